"""Measure which labelled events a judge would see within its budget, and what the judge adds to the cues."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from norm_core.engines.request_context import Deadline
from norm_core.evaluation.event_matching import match_events
from norm_core.evaluation.intervals import percentiles
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, Clock, ns_to_s, s_to_ns
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.judge import Judge
from norm_monitor.monitor import Monitor
from norm_monitor.units.unit import Unit
from sim_replays.drivers.script_driver import monitor_script
from sim_replays.monitor_bench.event_metrics import EventSession
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.truth import Truth

# Budgets in calls an hour; the greatest leaves no unit out.
BUDGETS = (60.0, 240.0, 36_000.0)
CALLS_PER_HOUR = 240.0
_TOLERANCE_NS = s_to_ns(2)
# A replay waits for a slow model as long as the judge's parameters permit, so that its answers can be measured.
_LONGEST_NS = s_to_ns(600)


@record
class Missed:
    """The labelled events of one kind that the judge never sees, in percent."""

    events: int
    unseen: float  # no judged unit begins within 2 s of its onset


@record
class Triggering:
    """What a budget in calls an hour lets the judge see."""

    budget_per_hour: float
    units: int
    calls_per_hour: float
    missed: dict[str, Missed]  # by polarity and, for errors, by basis


class RecordingJudge:
    """Record the units that a judge would receive, and answer nothing."""

    def __init__(self) -> None:
        self.units: list[Unit] = []

    def __call__(self, monitor: Monitor) -> Iterable[SocialFlag]:
        """Take the units that are due for the judge, and return no flag."""
        self.units += [view.unit for view in monitor.units_to_judge()]
        return ()


class JudgeStandIn:
    """Ask a judge about each due unit. Its answers count as immediate; `spent_s` holds the real time."""

    def __init__(self, judge: Judge, clock: Clock) -> None:
        self._judge, self._clock = judge, clock
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[str] = Counter()
        self.spent_s: list[float] = []

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
        """Judge the units that are due, and yield the flags that follow."""
        for view in monitor.units_to_judge():
            asked_ns = self._clock.now_ns()
            judgement = self._judge.judge(view, Deadline(self._clock, asked_ns + _LONGEST_NS))
            self.spent_s.append(ns_to_s(self._clock.now_ns() - asked_ns))
            self.outcomes[judgement.outcome] += 1
            if judgement.reason:
                self.reasons[judgement.reason] += 1
            yield from monitor.take_judgement(judgement)

    def late_count(self, deadline_ns: int) -> int:
        """Return how many units took longer than a live monitor would wait."""
        return sum(s_to_ns(spent_s) > deadline_ns for spent_s in self.spent_s)

    def latency_s(self) -> dict[str, float]:
        """Percentiles of the time per unit, with its note, in seconds."""
        return percentiles(self.spent_s)


def run_with_judge(  # noqa: PLR0917
    encounters: Iterable[Encounter],
    meaning: TextMatcher,
    table: ThresholdTable,
    asking: JudgeStandIn,
    seed: int = 0,
    calls_per_hour: float = CALLS_PER_HOUR,
) -> list[EventSession]:
    """Run cues and judge together on the encounters."""
    return [monitor_script(one, meaning, table, seed, asking, calls_per_hour) for one in encounters]


def measure_triggering(
    encounters: Iterable[Encounter], meaning: TextMatcher, table: ThresholdTable, calls_per_hour: float, seed: int = 0
) -> Triggering:
    """Measure which labelled events a judge would see. Asks no judge."""
    seen: list[tuple[Truth, list[Unit]]] = []
    for encounter in encounters:
        onlooker = RecordingJudge()
        session = monitor_script(encounter, meaning, table, seed, onlooker, calls_per_hour)
        seen.append((session.truth, onlooker.units))
    return measure_judge(seen, calls_per_hour)


def measure_judge(seen: Sequence[tuple[Truth, Sequence[Unit]]], calls_per_hour: float) -> Triggering:
    """Compute the measures from encounters and their judged units."""
    hours = sum(truth.end_ns - truth.start_ns for truth, _ in seen) / NS_PER_S / 3600
    units = sum(len(judged) for _, judged in seen)
    kinds: dict[str, list[bool]] = {}
    for truth, judged in seen:
        onsets_ns = [event.onset_ns for event in truth.events], [unit.onset_ns for unit in judged]
        matched = {event for event, _ in match_events(*onsets_ns, _TOLERANCE_NS, lambda *_: True).pairs}
        for place, event in enumerate(truth.events):
            names = [f"{event.polarity.value}s"]
            if event.polarity is Polarity.ERROR:
                names.append(f"errors by {event.basis.value}")
            for name in names:
                kinds.setdefault(name, []).append(place in matched)
    return Triggering(
        budget_per_hour=calls_per_hour,
        units=units,
        calls_per_hour=units / hours if hours else 0.0,
        missed={
            name: Missed(events=len(found), unseen=100 * found.count(False) / len(found))
            for name, found in sorted(kinds.items())
        },
    )
