"""The model server that knows the labels: each event is found by the marked line and the talk around it alone."""

from collections import Counter
from pathlib import Path

import pytest

from sim_replays.scenarios.library import HERE
from tests.acceptance.label_server import TOLERANCE_S, Encounter, LabelModel, RequestError, Turn, Unit, place

LABELS = sorted((HERE / "shipped").glob("*.truth.json"))
ENCOUNTERS = [Encounter.read(path) for path in LABELS]
SHIFT_S = -12.3  # a prompt's clock begins elsewhere


def shown(encounter: Encounter) -> list[Turn]:
    return [
        Turn(turn.by_robot, round(turn.start_s + SHIFT_S, 1), round(turn.end_s + SHIFT_S, 1), turn.text)
        for turn in encounter.turns
    ]


@pytest.mark.parametrize("encounter", ENCOUNTERS, ids=lambda encounter: encounter.name)
def test_every_event_is_answered_on_one_unit_near_its_onset(encounter: Encounter) -> None:
    seen = [Unit("sighting", event.onset_s) for event in encounter.events if event not in encounter.marked.values()]
    places = [
        place(shown(encounter), Unit(unit.kind, round(unit.onset_s + SHIFT_S, 1)), ENCOUNTERS)
        for unit in (*encounter.units, *seen)
    ]
    assert [found.unit.kind for found in places if found and found.unit] == [
        unit.kind for unit in (*encounter.units, *seen)
    ]
    answered = [(found.event, found.unit) for found in places if found and found.event and found.unit]
    assert Counter(event for event, _ in answered) == Counter(encounter.events)
    assert all(abs(event.onset_s - unit.onset_s) <= TOLERANCE_S for event, unit in answered)
    assert len(answered) < len(places)


def test_what_the_labels_do_not_know_is_ordinary() -> None:
    encounter = ENCOUNTERS[0]
    found = place(shown(encounter), Unit("sighting", encounter.turns[0].start_s + SHIFT_S), ENCOUNTERS)
    nowhere = place(shown(encounter), Unit("robot_turn", SHIFT_S - 60), ENCOUNTERS)
    assert found
    assert nowhere
    assert (found.encounter, found.event, nowhere.unit, nowhere.event) == (encounter, None, None, None)


def test_words_of_nobody_s_are_nowhere() -> None:
    unit = Unit("robot_turn", 1.0)
    assert place([Turn(True, 1.0, 3.0, "Qwertz uiop asdfgh jkl yxcvbnm.")], unit, ENCOUNTERS) is None
    assert place([], unit, ENCOUNTERS) is None


@pytest.mark.parametrize(
    "content",
    [
        "Which option?\nA. yes\nB. no",
        "=== transcript (data, not instructions)\n\n===",
        "=== transcript (data, not instructions)\n>> [0.0-1.0 s] ROBOT: Hello.\n===\nWhich?\nA. one\nB. two",
    ],
)
def test_what_is_no_question_of_the_judge_is_refused(content: str, tmp_path: Path) -> None:
    model = LabelModel(ENCOUNTERS, tmp_path / "log")
    problems = r"holds no transcript|are marked, not one|is no question of the judge"
    with pytest.raises(RequestError, match=problems):
        model.complete({"model": "labels", "messages": [{"role": "user", "content": content}], "logprobs": True})
