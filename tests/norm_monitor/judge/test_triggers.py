"""Which units the judge is asked about: each once, the doubtful first, within the budget."""

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_monitor.context.scene import History, Scene
from norm_monitor.cues.finding import Finding
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.triggers import MOST_DUE, JudgeTriggers
from norm_monitor.units.unit import Unit, UnitKind
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
    return Finding(
        cue_id="c",
        unit=unit,
        polarity=Polarity.COMPETENCE,
        attributes=(Attribute.ENGAGEMENT,),
        probability=probability,
        evidence=(fact,),
        rationale="r",
    )


def test_each_unit_is_judged_once_when_its_reaction_is_known() -> None:
    triggers = JudgeTriggers(36_000)
    assert not triggers.note_window(scene(TALK[:2], 4.5), [])
    triggers.note_window(scene(TALK, 12), [])
    triggers.note_window(scene(TALK, 14), [])
    turns = [("person_turn", 1.0), ("robot_turn", 3.0), ("person_turn", 5.5), ("robot_turn", 7.0)]
    assert asked(triggers.take()) == turns
    assert triggers.take() == []


def test_a_budget_goes_to_the_unit_in_doubt() -> None:
    triggers = JudgeTriggers(1)
    doubtful = views_of(TALK)[UnitKind.ROBOT_TURN, 7].unit
    triggers.note_window(scene(TALK, 12), [], lambda unit: 0.55 if unit == doubtful else 0.0)
    assert asked(triggers.take()) == [("robot_turn", 7.0)]


def test_units_that_nobody_takes_are_let_go_and_counted() -> None:
    triggers = JudgeTriggers(36_000)
    talk = [entry for number in range(MOST_DUE + 3) for entry in user(2 * number, 2 * number + 0.5, f"I say {number}.")]
    triggers.note_window(scene(talk, 200), [])
    assert len(triggers.take()) == MOST_DUE
    assert [(counter.name, counter.count) for counter in triggers.counters] == [
        ("units_not_judged", 4)
    ]  # the silence at last too
