"""Measure what the judge's triggers miss, and what the judge adds to the cues."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from norm_core.evaluation.intervals import percentiles
from norm_core.records.flag import Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.records.window import Window
from norm_core.runtime.time import NS_PER_S, Clock, ns_to_s
from norm_monitor.context.meaning import Meaning
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.judge import Judge
from norm_monitor.monitor import Monitor
from sim_replays.drivers.script_driver import monitor_script
from sim_replays.monitor_bench.event_metrics import EventSession
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.truth import TrueEvent, Truth

CUES_ALONE_S, SLOW_BEAT_S, EVERY_WINDOW_S = 0.0, 30.0, 5.0


@record
class Missed:
    """The labelled events of one kind that the judge never sees, in percent."""

    events: int
    unseen: float  # no judged window overlaps it
    not_whole: float  # no judged window contains it from onset to offset


@record
class Triggering:
    """One way to choose judged windows. `every_s` is the period in seconds; 0 means cues alone."""

    every_s: float
    windows: int
    calls_per_hour: float
    missed: dict[str, Missed]  # by polarity and, for errors, by basis


class RecordingJudge:
    """Record the windows that a judge would receive, and answer nothing."""

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def __call__(self, monitor: Monitor) -> Iterable[SocialFlag]:
        """Take the windows that are due for the judge, and yield no flag."""
        self.windows += monitor.windows_to_judge()
        return ()


class JudgeStandIn:
    """Ask a judge about each due window. Its answers count as immediate; `spent_s` holds the real time."""

    def __init__(self, judge: Judge, clock: Clock) -> None:
        self._judge, self._clock = judge, clock
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[str] = Counter()
        self.spent_s: list[float] = []

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
        """Judge the windows that are due, and yield the flags that follow."""
        for window in monitor.windows_to_judge():
            asked_ns = self._clock.now_ns()
            judgement = self._judge.judge(window)
            self.spent_s.append(ns_to_s(self._clock.now_ns() - asked_ns))
            self.outcomes[judgement.outcome] += 1
            if judgement.reason:
                self.reasons[judgement.reason] += 1
            if flag := monitor.take_judgement(judgement):
                yield flag

    def latency_s(self) -> dict[str, float]:
        """Percentiles of the time per window, with its note, in seconds."""
        return percentiles(self.spent_s)


def run_with_judge(  # noqa: PLR0917
    encounters: Iterable[Encounter],
    meaning: Meaning,
    table: ThresholdTable,
    asking: JudgeStandIn,
    seed: int = 0,
    calls_per_hour: float = SLOW_BEAT_S,
) -> list[EventSession]:
    """Run cues and judge together on the encounters."""
    return [monitor_script(one, meaning, table, seed, asking, calls_per_hour) for one in encounters]


def measure_triggering(
    encounters: Iterable[Encounter], meaning: Meaning, table: ThresholdTable, every_s: float, seed: int = 0
) -> Triggering:
    """Measure which labelled events a judge would see. Asks no judge."""
    seen: list[tuple[Truth, list[Window]]] = []
    for encounter in encounters:
        onlooker = RecordingJudge()
        session = monitor_script(encounter, meaning, table, seed, onlooker, every_s)
        seen.append((session.truth, onlooker.windows))
    return measure_judge(seen, every_s)


def measure_judge(seen: Sequence[tuple[Truth, Sequence[Window]]], every_s: float) -> Triggering:
    """Compute the measures from encounters and their judged windows."""
    hours = sum(truth.end_ns - truth.start_ns for truth, _ in seen) / NS_PER_S / 3600
    windows = sum(len(asked_about) for _, asked_about in seen)
    kinds: dict[str, list[tuple[TrueEvent, Sequence[Window]]]] = {}
    for truth, asked_about in seen:
        for event in truth.events:
            names = [f"{event.polarity.value}s"]
            if event.polarity is Polarity.ERROR:
                names.append(f"errors by {event.basis.value}")
            for name in names:
                kinds.setdefault(name, []).append((event, asked_about))
    return Triggering(
        every_s=every_s,
        windows=windows,
        calls_per_hour=windows / hours if hours else 0.0,
        missed={name: _missed(found) for name, found in sorted(kinds.items())},
    )


def _missed(found: Sequence[tuple[TrueEvent, Sequence[Window]]]) -> Missed:
    unseen = sum(not any(w.start_ns <= e.offset_ns and e.onset_ns < w.end_ns for w in windows) for e, windows in found)
    not_whole = sum(
        not any(w.start_ns <= e.onset_ns and e.offset_ns <= w.end_ns for w in windows) for e, windows in found
    )
    return Missed(events=len(found), unseen=100 * unseen / len(found), not_whole=100 * not_whole / len(found))
