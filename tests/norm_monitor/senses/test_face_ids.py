"""Ids of faces from frame to frame, by their boxes alone."""

import pytest

from norm_core.records.presence import Face
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.faces.face_ids import FaceIds


def face(left: float, width: float = 0.1) -> Face:
    return Face(left_ratio=left, top_ratio=0.2, width_ratio=width, height_ratio=0.2, confidence=0.9)


def test_a_face_keeps_its_id_while_it_moves_and_after_a_missed_frame() -> None:
    ids = FaceIds(left_after_s=2.0)
    (first,) = ids.follow(0, [face(0.1)])
    assert list(ids.follow(NS_PER_S, [face(0.18)])) == [first]
    assert ids.follow(2 * NS_PER_S, []) == {}
    assert list(ids.follow(3 * NS_PER_S, [face(0.2, 0.12)])) == [first]


@pytest.mark.parametrize("seconds", [4, -1])
def test_a_face_that_comes_back_is_new(seconds: int) -> None:
    ids = FaceIds(left_after_s=2.0)
    (first,) = ids.follow(0, [face(0.1)])
    ids.follow(NS_PER_S // 2, [])
    assert list(ids.follow(seconds * NS_PER_S, [face(0.1)])) != [first]


def test_two_faces_keep_apart_whichever_is_the_larger() -> None:
    ids = FaceIds(left_after_s=2.0)
    left, right = ids.follow(0, [face(0.3, 0.11), face(0.36, 0.1)])
    assert {key: box.left_ratio for key, box in ids.follow(NS_PER_S, [face(0.37, 0.12), face(0.31)]).items()} == {
        right: 0.37, left: 0.31,
    }  # fmt: skip


def test_a_jump_over_more_than_a_face_is_another_face_and_ids_differ_between_sessions() -> None:
    ids = FaceIds(left_after_s=2.0)
    (first,) = ids.follow(0, [face(0.1)])
    assert list(ids.follow(NS_PER_S, [face(0.7)])) != [first]
    assert list(FaceIds(left_after_s=2.0).follow(0, [face(0.1)])) != [first]
