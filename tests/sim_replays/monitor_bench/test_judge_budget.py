"""A judge that is right makes flags better than none, at any budget."""

from collections.abc import Iterator

import pytest

from norm_core.records.flag import Evidence, Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.monitor import Monitor
from norm_monitor.units.unit import UnitJudgement, UnitKind
from sim_replays.drivers.script_driver import monitor_script, records_of_script
from sim_replays.monitor_bench.event_metrics import EncounterScores, score_encounters
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.library import TrueEvent, find, read

BUDGETS = (10.0, 100.0, 240.0, 1000.0)
SAME_NS = NS_PER_S // 5


class KnowingJudge:
    """Answer by the labels; one that charges answers charges a late one in place of the silence before it."""

    def __init__(self, encounter: Encounter, charges_answers: bool) -> None:
        _, truth = records_of_script(encounter)
        self._events, self._charges_answers = truth.events, charges_answers

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
        for view in monitor.units_to_judge():
            yield from monitor.take_judgement(_judgement(view, self._event_of(view)))

    def _event_of(self, view: UnitView) -> TrueEvent | None:
        unit, onsets_ns = view.unit, [view.unit.onset_ns]
        if self._charges_answers and unit.kind is UnitKind.ROBOT_TURN:  # the silence before it began then
            onsets_ns += [max((turn.end_ns for turn in view.turns if turn.end_ns < unit.onset_ns), default=0)]
        elif self._charges_answers and any(turn.is_robot and turn.start_ns == unit.offset_ns for turn in view.turns):
            return None
        near = (one for at_ns in onsets_ns for one in self._events if abs(one.onset_ns - at_ns) <= SAME_NS)
        return next(near, None)


def _judgement(view: UnitView, event: TrueEvent | None) -> UnitJudgement:
    fact = Evidence(measure="m", value=0.9, start_ns=view.unit.onset_ns, end_ns=view.unit.onset_ns)
    return UnitJudgement(
        unit=view.unit,
        outcome=Outcome.ANSWERED,
        probability={one: 0.9 if event and event.polarity is one else 0.05 for one in Polarity},
        attributes=event.attributes if event else (),
        evidence=(fact,) if event else (),
        rationale=event.rationale if event else "",
        correction=(event.correction or "Mend it.") if event and event.polarity is Polarity.ERROR else "",
    )


# Each flags several events wrongly without a judge; two hold a late answer.
NAMES = ("w13_ferry_lounge_sleeper", "w05_brave_arm", "w02_foot_clinic", "w10_court_corridor")


@pytest.fixture(scope="module")
def alone(meaning: EncoderMatcher) -> EncounterScores:
    return scores(meaning, 0.0)


def scores(meaning: EncoderMatcher, calls_per_hour: float, *, charges_answers: bool = False) -> EncounterScores:
    table, talks = ThresholdTable.shipped(), [read(find(name)) for name in NAMES]
    judged = ((talk, KnowingJudge(talk, charges_answers)) for talk in talks)
    return score_encounters([monitor_script(talk, meaning, table, 0, judge, calls_per_hour) for talk, judge in judged])


@pytest.mark.parametrize("charges_answers", [False, True], ids=["labels' unit", "late answer"])
def test_a_judge_that_is_right_makes_flags_better_at_any_budget(
    meaning: EncoderMatcher, alone: EncounterScores, charges_answers: bool
) -> None:
    for calls_per_hour in BUDGETS:
        judged = scores(meaning, calls_per_hour, charges_answers=charges_answers)
        for polarity in Polarity:
            assert judged.of(polarity).f1 >= alone.of(polarity).f1, (calls_per_hour, polarity)
    for polarity in Polarity:
        assert judged.of(polarity).f1 > alone.of(polarity).f1 + 5
