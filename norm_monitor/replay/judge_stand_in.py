"""Ask a judge in a replay, and measure its answers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from norm_core.engines.request_context import Deadline
from norm_core.records.flag import SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import Clock, ns_to_s, s_to_ns
from norm_core.runtime.wording import count_of, to_words
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import Judge
from norm_monitor.monitor import Monitor
from scoring.intervals import percentiles

# A replay waits for a slow model as long as the judge's parameters permit, so that its answers can be measured.
_MAX_LENGTH_NS = s_to_ns(600)

# Called with the monitor after each record; returns the flags of any extra work.
Attend = Callable[[Monitor], Iterable[SocialFlag]]


def attend_nothing(monitor: Monitor) -> Iterable[SocialFlag]:
    """Leave the monitor without a judge."""
    return ()


class UnitJudge(Protocol):
    """A judge, or the answers that one gave earlier."""

    def judge(self, view: UnitView, deadline: Deadline | None = None) -> UnitJudgement:
        """Answer about a unit."""


class UnitCollector:
    """Collect the units that are due, and answer nothing; frames that nobody may see are not held."""

    def __init__(self, *, keeps_frames: bool) -> None:
        self._keeps_frames = keeps_frames
        self.views: list[UnitView] = []

    def __call__(self, monitor: Monitor) -> Iterable[SocialFlag]:
        """Collect the units that are due."""
        for view in monitor.units_to_judge():
            seen = view if self._keeps_frames else replace(view, window=replace(view.window, frames=()))
            self.views.append(seen)
        return ()


class JudgeStandIn:
    """Ask a judge about each due unit. Its answers count as immediate; `spent_s` holds the real time."""

    def __init__(self, judge: UnitJudge, clock: Clock) -> None:
        self.judge, self._clock = judge, clock
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[str] = Counter()
        self.spent_s: list[float] = []
        self.judgements: list[UnitJudgement] = []

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
        """Judge the units that are due, and yield the flags that follow."""
        for view in monitor.units_to_judge():
            asked_ns = self._clock.now_ns()
            judgement = self.judge.judge(view, Deadline(self._clock, asked_ns + _MAX_LENGTH_NS))
            self.spent_s.append(ns_to_s(self._clock.now_ns() - asked_ns))
            self.judgements.append(judgement)
            self.outcomes[judgement.outcome] += 1
            if judgement.reason:
                self.reasons[judgement.reason] += 1
            yield from monitor.take_judgement(judgement)
        judge = self.judge
        if isinstance(judge, Judge):  # else its notes came with its answers
            for request in monitor.notes_to_write():
                deadline = Deadline(self._clock, self._clock.now_ns() + _MAX_LENGTH_NS)
                yield from monitor.take_note(judge.write_note(request, deadline))

    def summary(self) -> list[str]:
        """Summarize the outcomes of the questions, with the three most frequent reasons for no answer, as lines."""
        words = ", ".join(f"{number} {to_words(outcome)}" for outcome, number in self.outcomes.items())
        named = [f"{count_of(number, 'time')}: {reason}" for reason, number in self.reasons.most_common(3)]
        return [f"the judge's answers: {count_of(len(self.spent_s), 'moment')}, {words or 'none asked'}", *named]

    def count_late(self, deadline_ns: int) -> int:
        """Return how many units took longer than a live monitor would wait."""
        return sum(s_to_ns(spent_s) > deadline_ns for spent_s in self.spent_s)

    def latency_s(self) -> dict[str, float]:
        """Percentiles of the time per unit, without its note, in seconds."""
        return percentiles(self.spent_s)
