"""Which units the judge is asked about: each once, first those whose flag changes, within the ceiling."""

import pytest

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.unit import Unit, UnitKind
from norm_monitor.context.scene import History, Scene
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.triggers import LONG_SILENCE_NS, MAX_DUE, NO_CEILING, JudgeTriggers
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import at, robot, user, window_of
from tests.norm_monitor.judge.unit_views import views_of

TALK = [*user(1, 2, "Hello there."), *robot(3, 4, "Hello."), *user(5.5, 6, "Bye then."), *robot(7, 8, "Bye.")]


def scene(talk: list[Entry], end_s: float) -> Scene:
    return History().scene(window_of(talk, end_s))


def asked(views: list[UnitView]) -> list[tuple[str, float]]:
    return [(view.unit.kind.value, (view.unit.onset_ns - at(0)) / 1e9) for view in views]


def finding(unit: Unit, probability: float) -> Finding:
    fact = Evidence(measure="m", value=1.0, start_ns=unit.onset_ns, end_ns=unit.onset_ns)
    reason = Reason(
        cue_id="c",
        polarity=Polarity.COMPETENCE,
        attributes=(Attribute.ENGAGEMENT,),
        evidence=(fact,),
        rationale="r",
    )
    return Finding(unit=unit, reason=reason, probability=probability)


def test_each_unit_is_judged_once_when_its_reaction_is_known() -> None:
    triggers = JudgeTriggers(NO_CEILING)
    assert not triggers.note_window(scene(TALK[:2], 4.5), [])
    triggers.note_window(scene(TALK, 12), [])
    triggers.note_window(scene(TALK, 14), [])
    assert asked(triggers.take()) == [("robot_turn", 3.0), ("robot_turn", 7.0)]
    assert triggers.take() == []


@pytest.mark.parametrize(
    ("talk", "is_cited", "is_judged"),
    [
        ([*user(1, 2, "Where is it?"), *robot(2.5, 4, "There.")], False, False),
        ([*user(1, 2, "Where is it?"), *robot(2.5, 4, "There.")], True, True),
        ([*user(1, 4, "I wanted to see my"), *robot(3, 5, "Stop.")], False, True),
        ([*user(1, 2, "I wanted to see my"), *user(3.5, 5, "old school.")], False, True),
    ],
    ids=["answered", "cited by a cue", "talked into", "left open"],
)
def test_person_turn_is_judged_only_if_unusual(talk: list[Entry], is_cited: bool, is_judged: bool) -> None:
    triggers = JudgeTriggers(NO_CEILING)
    cited = [finding(views_of(talk)[UnitKind.PERSON_TURN, 1].unit, 0.5)] if is_cited else []
    triggers.note_window(scene(talk, 12), cited)
    assert (("person_turn", 1.0) in asked(triggers.take())) is is_judged


def test_lasting_silence_is_judged_once() -> None:
    triggers = JudgeTriggers(NO_CEILING)
    question = user(1, 2, "Where is the tea room?")
    before, after = 2 + LONG_SILENCE_NS / NS_PER_S - 1, 2 + LONG_SILENCE_NS / NS_PER_S + 1
    assert not triggers.note_window(scene(question, before), [])
    triggers.note_window(scene(question, after), [])
    triggers.note_window(scene([*question, *user(25, 26, "Hello?")], 30), [])
    assert asked(triggers.take()) == [("silence", 2.0)]


def test_budget_goes_to_the_unit_most_likely_to_change() -> None:
    triggers = JudgeTriggers(1)
    likely = views_of(TALK)[UnitKind.ROBOT_TURN, 7].unit
    triggers.note_window(scene(TALK, 12), [], lambda unit: 0.55 if unit == likely else 0.3)
    assert asked(triggers.take()) == [("robot_turn", 7.0)]


def test_silence_and_its_late_answer_are_judged_together() -> None:
    late = [*user(1, 2, "Where is it?"), *robot(8, 9, "There."), *robot(14, 15, "Bye.")]
    for likely_ns, times in ((at(2), {2.0, 8.0}), (at(14), {14.0})):
        triggers = JudgeTriggers(1)

        def change_of(unit: Unit, likely_ns: int = likely_ns) -> float:
            return float(unit.onset_ns == likely_ns)

        triggers.note_window(scene(late, 20), [], change_of)
        assert {onset for _, onset in asked(triggers.take())} == times


def test_due_units_are_taken_by_use_and_the_rest_counted() -> None:
    triggers = JudgeTriggers(NO_CEILING)
    talk = [entry for number in range(MAX_DUE + 3) for entry in robot(2 * number, 2 * number + 0.5, f"I say {number}.")]
    triggers.note_window(scene(talk, 200), [], lambda unit: (unit.onset_ns - at(0)) / at(1000))
    assert asked(triggers.take(1)) == [("robot_turn", 2.0 * (MAX_DUE + 2))]
    assert len(triggers.take()) == MAX_DUE - 1
    assert [(counter.name, counter.count) for counter in triggers.counters] == [("units_not_judged", 3)]
