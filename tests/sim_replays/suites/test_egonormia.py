import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_replays.items.target import SuiteError, compute_iou
from sim_replays.suites import egonormia as suite
from sim_replays.suites.egonormia import EgoNormiaSetting


@pytest.fixture
def robot_set(shared_data: Path) -> Path:
    return shared_data / "egonormia/ood_robot.json"


def test_the_first_place_is_no_longer_right(robot_set: Path) -> None:
    """Unshuffled a constant first choice would get 9 of 11."""
    items = [item for seed in range(30) for item in suite.read(robot_set, seed)[0]]
    correct = {label.uid: label.correct for label in suite.read(robot_set)[1]}
    firsts = [item.action_order[0] == correct[item.uid] for item in items]
    assert 0.1 < sum(firsts) / len(firsts) < 0.3


def test_actions_and_justifications_are_shuffled_apart(robot_set: Path) -> None:
    items, _ = suite.read(robot_set)
    assert any(item.action_order != item.justification_order for item in items)
    again, _ = suite.read(robot_set)
    assert items == again


@given(st.frozensets(st.integers(0, 4)), st.frozensets(st.integers(0, 4)))
def test_overlap_is_one_exactly_for_equals(found: frozenset[int], wanted: frozenset[int]) -> None:
    overlap = compute_iou(found, wanted)
    assert 0 <= overlap <= 1
    assert (overlap == 1) == (found == wanted)


def test_scene_travels_only_where_it_is_given(robot_set: Path) -> None:
    item = suite.read(robot_set)[0][0]
    assert suite.make_query(item, EgoNormiaSetting.PIPELINE, "action").viewpoint.description == item.scene
    assert item.scene not in repr(suite.make_query(item, EgoNormiaSetting.BLIND, "action"))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"justifications": ["as it is kind"]}, "2 behaviors and 1 justifications"),
        ({"correct": 7}, "no behavior 7 among 2"),
        ({"sensibles": [0, 9]}, "no behavior 9 among 2"),
    ],
)
def test_labels_that_name_no_option_are_refused(tmp_path: Path, other: dict[str, Any], told: str) -> None:
    item = {"id": "a_1", "behaviors": ["go", "wait"], "justifications": ["so", "thus"], "correct": 0, "sensibles": [0]}
    (tmp_path / "items.json").write_text(json.dumps([{**item, **other}]))
    with pytest.raises(SuiteError, match=f"is not an item of EgoNormia: .*{told}"):
        suite.read(tmp_path / "items.json")


def test_items_of_one_video_share_their_source() -> None:
    assert suite.find_source("a1b2-c3_12") == suite.find_source("a1b2-c3_90") == "a1b2-c3"
    assert suite.find_source("clip-1") == "clip-1"
