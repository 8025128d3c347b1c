"""The people node on the real definitions of REP-155 and tf, over DDS, against the distances of a scenario."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.messages import from_message
from norm_core.records.presence import Engagement, Gaze, Presence, PresenceState
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.replay.node_process import NodeProcess
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import PEOPLE
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

START_NS = 1_767_225_600 * NS_PER_S
PERSONS = "/humans/persons"


@pytest.fixture
def presences(observer: Observer, domain_id: int) -> list[Any]:

    return observer.records(Presence, "presence")


def told(messages: list[Any]) -> list[Presence]:
    return [from_message(Presence, message) for message in messages]


def play(bag: Path, domain_id: int, rate: float, wait: Any) -> None:
    """Plays the bag, and waits until it is at its end spins meanwhile."""
    player = {"bag": str(bag), "rate": rate, "wait_for_subscribers_s": 8.0}
    with NodeProcess(["bag_player"], {"bag_player": player}, domain_id) as played:
        wait(lambda: not played.is_running())
        assert played.wait(PATIENCE_S) == 0, played.last_output()


def talk_of_two(make: Maker) -> Iterator[tuple[int, str, Any]]:
    """Five seconds of persons a and b, who is there for the third alone; a looks at b from the second second on."""
    yield START_NS, f"{PERSONS}/a/anchor_frame", make("std_msgs/msg/String", {"data": "face_a"})
    for tenth in range(50):
        stamp_ns = START_NS + tenth * 100 * NS_PER_MS
        header = make.header(stamp_ns)
        ids = ["a", "b"] if 20 <= tenth < 30 else ["a"]
        yield stamp_ns, f"{PERSONS}/tracked", make("hri_msgs/msg/IdsList", {"header": header, "ids": ids})
        level = {"header": header, "level": 3}
        yield stamp_ns, f"{PERSONS}/a/engagement_status", make("hri_msgs/msg/EngagementLevel", level)
        if tenth >= 10:
            gaze = {"header": header, "sender": "a", "receiver": "b" if tenth >= 20 else ""}
            yield stamp_ns, "/humans/interactions/gazing", make("hri_msgs/msg/Gaze", gaze)
        frames = [("map", "base_link", (1.0, 1.0)), ("map", "face_a", (1.6, 1.8)), ("map", "person_b", (1.0, 3.0))]
        transforms = [transform(make, stamp_ns, *frame) for frame in frames]
        yield stamp_ns, "/tf", make("tf2_msgs/msg/TFMessage", {"transforms": transforms})


def transform(make: Maker, stamp_ns: int, parent: str, child: str, place: tuple[float, float]) -> Any:
    header = make.header(stamp_ns)
    header.frame_id = parent
    vector = make("geometry_msgs/msg/Vector3", {"x": place[0], "y": place[1], "z": 1.5})
    turn = make("geometry_msgs/msg/Quaternion", {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0})
    inner = make("geometry_msgs/msg/Transform", {"translation": vector, "rotation": turn})
    values = {"header": header, "child_frame_id": child, "transform": inner}
    return make("geometry_msgs/msg/TransformStamped", values)


@pytest.mark.usefixtures("hri_msgs")
def test_two_persons_who_come_and_go_with_engagement_gaze_and_place(
    presences: list[Any], observer: Observer, domain_id: int, tmp_path: Path
) -> None:
    make = Maker(PEOPLE)
    bag = write(tmp_path / "bag", make, talk_of_two(make))
    with NodeProcess(["people"], None, domain_id):
        observer.meet("people")
        play(bag, domain_id, 1.0, lambda ended: observer.until(ended, "the bag's end", 60))
        # Its own subscriptions about b go as b does, and those about a once nobody publishes about a.
        observer.until(
            lambda: not observer.node.count_subscribers(f"{PERSONS}/b/engagement_status"), "no more word of b"
        )
        observer.until(lambda: told(presences)[-1].stamp_ns >= START_NS + 4_400 * NS_PER_MS, "presence up to the end")
    by_time = {presence.stamp_ns: presence for presence in told(presences)}
    early, both, late = (by_time[START_NS + ms * NS_PER_MS] for ms in (1_400, 2_600, 4_400))
    assert [p.person_id for p in both.persons] == ["a", "b"]
    assert [p.distance_m for p in both.persons] == pytest.approx([1.0, 2.0])
    assert [(p.person_id, p.gaze, p.engagement) for p in early.persons] == [("a", Gaze.AT_ROBOT, Engagement.ENGAGED)]
    assert [(p.person_id, p.gaze) for p in late.persons] == [("a", Gaze.ELSEWHERE)]
    assert (early.away_since_ns, late.state) == (None, PresenceState.PRESENT)


def test_faces_without_persons_are_noted_with_what_makes_persons_of_them(domain_id: int, observer: Observer) -> None:
    from std_msgs.msg import Empty

    statuses = observer.watch_status()
    observer.node.create_publisher(Empty, "/humans/faces/tracked", 1)
    with NodeProcess(["people"], None, domain_id):
        advice = "so the faces count; for distances, engagement and gaze, start hri_person_manager"
        observer.until(lambda: any(advice in note for status in statuses for note in status.notes), advice)


def test_a_second_source_of_presence_is_named_once_it_sends(domain_id: int, observer: Observer) -> None:
    from norm_nodes.base.convert import to_ros

    statuses = observer.watch_status()
    rival = observer.publisher(Presence, "presence")
    advice = "set the camera's faces to false"
    with NodeProcess(["people"], None, domain_id):
        observer.meet("people")
        observer.until(rival.get_subscription_count, "people to meet the rival")
        assert not any(advice in reason for s in statuses for reason in s.reasons)  # DDS lists a killed one, too
        rival.publish(to_ros(Presence(stamp_ns=START_NS, source_topic="/camera", state=PresenceState.ABSENT)))
        observer.until_told(advice)
