"""Distances by the tree of transforms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.people.transforms import MAX_FRAMES, TransformError, TransformTree
from tests.norm_monitor.senses.rep155 import transform

AT_NS = 1_000 * NS_PER_S
BELIEVED_NS = 2 * NS_PER_S
Place = tuple[float, float, float]
places = st.tuples(*[st.floats(-5, 5)] * 3)
angles = st.floats(-math.pi, math.pi)


def turned(yaw: float) -> tuple[float, float, float, float]:
    return 0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)


def distance(tree: TransformTree, frame: str, at_ns: int = AT_NS) -> float | None:
    return tree.ground_distance_m(frame, "base_link", at_ns, BELIEVED_NS)


@given(places, places, places, angles, angles)
def test_persons_and_base_may_hang_on_one_map(
    base: Place, link: Place, person: Place, base_yaw: float, link_yaw: float
) -> None:
    tree = TransformTree()
    tree.put(transform(AT_NS, "map", "odom", base, turned(base_yaw)))
    tree.put(transform(AT_NS, "odom", "base_link", link, turned(link_yaw)))
    tree.put(transform(AT_NS, "map", "person_a", person))
    cos, sin = math.cos(base_yaw), math.sin(base_yaw)
    x, y = base[0] + cos * link[0] - sin * link[1], base[1] + sin * link[0] + cos * link[1]
    distance_m = distance(tree, "person_a")
    assert distance_m == pytest.approx(math.hypot(person[0] - x, person[1] - y), abs=1e-9)


@given(places, angles, places)
def test_a_tilted_camera_chain_keeps_a_length_in_the_plane(place: Place, pitch: float, seen: Place) -> None:
    tree = TransformTree()
    rotation = (0.0, math.sin(pitch / 2), 0.0, math.cos(pitch / 2))
    tree.put(transform(0, "base_link", "camera", place, rotation), static=True)
    tree.put(transform(AT_NS, "camera", "body_a", seen))
    x = place[0] + math.cos(pitch) * seen[0] + math.sin(pitch) * seen[2]
    assert distance(tree, "body_a") == pytest.approx(math.hypot(x, place[1] + seen[1]), abs=1e-9)


def test_lookup_takes_the_newest_before_a_time_in_any_order() -> None:
    tree = TransformTree()
    for seconds in (2, 0, 1):
        tree.put(transform(AT_NS + seconds * NS_PER_S, "base_link", "body_a", (1.0 + seconds, 0.0, 0.0)))
    assert [distance(tree, "body_a", AT_NS + s * NS_PER_S // 2) for s in range(-1, 5)] == [None, 1, 1, 2, 2, 3]


def test_an_old_frame_is_unknown_and_an_old_joint_counts() -> None:
    tree = TransformTree()
    tree.put(transform(AT_NS - 60 * NS_PER_S, "base_link", "neck", (0.0, 0.0, 1.0)))
    tree.put(transform(AT_NS, "neck", "face_a", (1.0, 0.0, 0.0)))
    tree.put(transform(0, "face_a", "gaze_a", (0.5, 0.0, 0.0)), static=True)
    assert distance(tree, "gaze_a") == pytest.approx(1.5)
    assert distance(tree, "gaze_a", AT_NS + BELIEVED_NS + 1) is None


def test_loops_unknown_frames_and_invalid_transforms_give_no_distance() -> None:
    tree = TransformTree()
    tree.put(transform(AT_NS, "b", "a", (1.0, 0.0, 0.0)))
    tree.put(transform(AT_NS, "a", "b", (1.0, 0.0, 0.0)))
    assert distance(tree, "a") is None
    assert distance(tree, "nobody") is None
    for place, rotation in (((math.nan, 0.0, 0.0), turned(0)), ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))):
        with pytest.raises(TransformError):
            tree.put(transform(AT_NS, "base_link", "c", place, rotation))


def test_frames_are_bounded() -> None:
    tree = TransformTree()
    for index in range(MAX_FRAMES):
        tree.put(transform(AT_NS, "base_link", f"f{index}", (1.0, 0.0, 0.0)))
    with pytest.raises(TransformError):
        tree.put(transform(AT_NS, "base_link", "one_more", (1.0, 0.0, 0.0)))
    tree.put(transform(AT_NS + 1, "base_link", "f0", (2.0, 0.0, 0.0)))
    assert distance(tree, "f0", AT_NS + 1) == 2.0
