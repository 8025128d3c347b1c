"""What asking the judge only at times loses, and what the judge adds: watched encounters with somebody at its place."""

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
    """The labelled events of one kind that the judge is never shown, in percent."""

    events: int
    unseen: float  # no moment of it lies in a window that is judged
    not_whole: float  # no such window holds it from onset to offset


@record
class Triggering:
    """One way to choose the windows that are judged. every_s is the slow beat's; 0 where cues alone trigger."""

    every_s: float
    windows: int
    calls_per_hour: float
    missed: dict[str, Missed]  # by polarity, and errors by what a coder rests on


class RecordingJudge:
    """Takes the windows that a judge would be asked about, and answers nothing."""

    def __init__(self) -> None:
        self.windows: list[Window] = []

    def __call__(self, monitor: Monitor) -> Iterable[SocialFlag]:
        self.windows += monitor.windows_to_judge()
        return ()


class JudgeStandIn:
    """Asks a judge about each window as it falls due. Its answers count as known at once: see spent_s for its time."""

    def __init__(self, judge: Judge, clock: Clock) -> None:
        self._judge, self._clock = judge, clock
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[str] = Counter()
        self.spent_s: list[float] = []

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
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
        """Percentiles of the time a window took, its note included."""
        return percentiles(self.spent_s)


def run_with_judge(  # noqa: PLR0917
    encounters: Iterable[Encounter],
    meaning: Meaning,
    table: ThresholdTable,
    asking: JudgeStandIn,
    seed: int = 0,
    judge_every_s: float = SLOW_BEAT_S,
) -> list[EventSession]:
    """The encounters watched by cues and judge together."""
    return [monitor_script(one, meaning, table, seed, asking, judge_every_s) for one in encounters]


def measure_triggering(
    encounters: Iterable[Encounter], meaning: Meaning, table: ThresholdTable, every_s: float, seed: int = 0
) -> Triggering:
    """Which labelled events a judge would be shown; none is asked."""
    seen: list[tuple[Truth, list[Window]]] = []
    for encounter in encounters:
        onlooker = RecordingJudge()
        session = monitor_script(encounter, meaning, table, seed, onlooker, every_s)
        seen.append((session.truth, onlooker.windows))
    return measure_judge(seen, every_s)


def measure_judge(seen: Sequence[tuple[Truth, Sequence[Window]]], every_s: float) -> Triggering:
    """The measures over encounters and the windows judged in each."""
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
