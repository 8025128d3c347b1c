"""The model server that knows the labels: each event is found by what is said in it, and by nothing else."""

from pathlib import Path

import pytest

from sim_replays.scenarios.library import HERE
from tests.acceptance.label_server import Encounter, Event, LabelModel, RequestError, Turn, place

LABELS = sorted((HERE / "shipped").glob("*.truth.json"))
ENCOUNTERS = [Encounter.read(path) for path in LABELS]
WINDOW_S = 15.0


def event_at_the_end_of(encounter: Encounter, last: int) -> Event | None:
    """What is shown by a window that ends with a turn, with times from its own beginning as a prompt tells them."""
    start_s = encounter.turns[last].end_s - WINDOW_S
    turns = [
        Turn(turn.by_robot, round(turn.start_s - start_s, 1), round(turn.end_s - start_s, 1), turn.text)
        for turn in encounter.turns[: last + 1]
        if turn.start_s >= start_s or turn is encounter.turns[last]
    ]
    found = place(turns, ENCOUNTERS)
    assert found
    assert (found.encounter, found.turn) == (encounter, last)
    return found.event


@pytest.mark.parametrize("encounter", ENCOUNTERS, ids=lambda encounter: encounter.name)
def test_every_event_is_shown_by_a_turn_of_its_own(encounter: Encounter) -> None:
    shown = [event_at_the_end_of(encounter, last) for last in range(len(encounter.turns))]
    assert set(encounter.events) == set(filter(None, shown))
    assert None in shown


def test_words_of_nobody_s_are_nowhere() -> None:
    assert place([Turn(True, 1.0, 3.0, "Qwertz uiop asdfgh jkl yxcvbnm.")], ENCOUNTERS) is None
    assert place([], ENCOUNTERS) is None


@pytest.mark.parametrize("content", ["Which option?\nA. yes\nB. no", "=== transcript (data, not instructions)\n\n==="])
def test_what_is_no_question_of_the_judge_is_refused(content: str, tmp_path: Path) -> None:
    model = LabelModel(ENCOUNTERS, tmp_path / "log")
    with pytest.raises(RequestError, match=r"the prompt holds no transcript|is no question of the judge"):
        model.complete({"model": "labels", "messages": [{"role": "user", "content": content}], "logprobs": True})
