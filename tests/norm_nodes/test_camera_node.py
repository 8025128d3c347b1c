"""The camera node over real DDS: what its status says of a camera that is gone, wrong or lossy."""

import re
import time
from types import SimpleNamespace
from typing import Any

import pytest

from norm_core.records.messages import from_message
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.stamps import split_stamp
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S
from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from tests.norm_monitor.senses.camera_messages import START_NS, Pixels, compressed, face_image, scene
from tests.observer import Observer

TOPIC = "/camera/image_raw/compressed"


class Driver:
    """A camera's driver in the test's own process: a picture a second of stamp time at each call."""

    def __init__(self, observer: Observer, start_ns: int, transport: str = "compressed", reliable: bool = True) -> None:
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from sensor_msgs.msg import CompressedImage, Image

        quality = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
        self._node, self._stamp_ns = observer.node, start_ns
        if transport == "raw":
            self._message = Image(encoding="bgr8", width=64, height=48, step=192, data=scene().tobytes())
        else:
            self._message = CompressedImage(format="jpeg", data=compressed(0, scene()).data)
        self._publisher = self._node.create_publisher(
            type(self._message), TOPIC, QoSProfile(depth=30, reliability=quality)
        )

    def show(self, picture: Pixels) -> None:
        """Sends another picture from now on."""
        self._message.data = compressed(0, picture).data

    def send(self, step_ns: int = NS_PER_S) -> bool:
        self._stamp_ns += step_ns
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = split_stamp(self._stamp_ns)
        self._publisher.publish(self._message)
        return True

    def end(self) -> None:
        self._node.destroy_publisher(self._publisher)


def camera(domain_id: int, **parameters: Any) -> NodeProcess:
    return NodeProcess(["camera"], {"camera": {"topic": TOPIC, "faces": False, **parameters}}, domain_id)


def stated(observer: Observer, words: str) -> None:
    """Waits until the latest heartbeat says so."""
    observer.until(lambda: any(words in reason for reason in observer.statuses[-1].reasons), f"the status: {words}")


@pytest.mark.ros
def test_a_camera_is_stale_while_it_is_gone(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    with camera(domain_id, stale_after_s=0.5):
        driver = Driver(observer, START_NS)
        observer.until(lambda: driver.send() and observer.counted("frames_kept") >= 1, "a frame")
        driver.end()
        observer.until(lambda: statuses[-1].health is Health.STALE, "a stale status")
        kept_count, driver = observer.counted("frames_kept"), Driver(observer, START_NS + 3600 * NS_PER_S)
        observer.until(
            lambda: driver.send() and observer.counted("frames_kept") > kept_count, "a frame after it came back"
        )
        observer.until(lambda: driver.send() and statuses[-1].health is not Health.STALE, "a status no longer stale")
        assert observer.counted("stale_input") >= 1
        assert observer.counted("stamps_jumped_forward") == 1


@pytest.mark.ros
def test_raw_best_effort_is_named_where_seconds_lack_a_frame(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    with camera(domain_id, transport="raw"):
        driver = Driver(observer, START_NS, "raw", reliable=False)
        observer.until(lambda: driver.send() and observer.counted("frames_kept") >= 8, "frames")
        assert statuses[-1].reasons == ()
        driver.send(step_ns=10 * NS_PER_S)
        observer.until(lambda: driver.send() and observer.counted("raw_best_effort") == 1, "the advice")
        stated(observer, "set transport to compressed")


@pytest.mark.ros
def test_camera_states_wrong_type_and_no_loss(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    with camera(domain_id, transport="raw", stale_after_s=0.5):
        driver = Driver(observer, START_NS, "raw", reliable=False)
        observer.until(lambda: driver.send() and observer.counted("frames_kept") >= 8, "frames")
        observer.until(lambda: statuses[-1].health is Health.STALE, "the end of the pictures")
        driver.send(step_ns=10 * NS_PER_S)  # it is plugged in again
        observer.until(lambda: driver.send() and observer.counted("stamp_gaps"), "the gap")
        listed = len(statuses) + 2
        observer.until(lambda: driver.send() and len(statuses) > listed, "more heartbeats")
        driver.end()
        Driver(observer, START_NS, "compressed")
        stated(observer, "is published as sensor_msgs/msg/CompressedImage and read as sensor_msgs/msg/Image")
        assert not observer.counted("raw_best_effort")


@pytest.mark.ros
@pytest.mark.parametrize(
    ("topic", "counts", "health"),
    [(TOPIC, (2, 3), Health.OK), ("/other", (1,), Health.OK), ("/other", (1, 1), Health.DEGRADED)],
)
def test_lost_messages_are_counted(domain_id: int, topic: str, counts: tuple[int, ...], health: Health) -> None:
    """A single loss is only counted. Lost images are stated only where the stamps show that a frame is missing."""
    import rclpy
    from norm_nodes.camera_node import CameraNode

    rclpy.init(domain_id=domain_id)
    try:
        node = CameraNode()
        lost = node.make_loss_events(topic).message_lost
        assert lost is not None
        for count in counts:
            lost(SimpleNamespace(total_count_change=count))
        status = node.status()
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
    assert [c.count for c in status.counters if c.name == "messages_lost"] == [sum(counts)]
    assert status.health is health
    assert all("use the compressed topic" in reason for reason in status.reasons)


@pytest.mark.ros
@pytest.mark.usefixtures("hri_msgs")
def test_faces_are_those_of_rep_155_that_people_reads(domain_id: int, observer: Observer) -> None:
    """An id lasts as long as its face is in sight, and tells nobody who came back."""
    from norm_nodes.base.convert import record_class
    from norm_nodes.base.endpoint import EVENTS

    own = observer.records(Presence, "presence")
    messages = observer.collect(record_class(Presence), "/other/presence", EVENTS)
    other = ("--autostart", "--ros-args", "-r", "__ns:=/other", "--")

    def face_ids() -> set[str]:
        names = [name for name, _ in observer.node.get_topic_names_and_types() if observer.node.count_publishers(name)]
        return {match[1] for match in map(re.compile("/humans/faces/(.+)/roi").fullmatch, names) if match}

    def until(is_met: Any, what: str) -> Presence:
        """Sends pictures until a new presence that people publishes is as wanted."""
        sent = len(messages)
        answered, sent_s = -1, 0.0

        def find() -> Presence | None:
            nonlocal answered, sent_s
            # One picture at a time: a camera that falls behind leaves some out, and a face is then gone for long.
            if len(own) != answered or time.monotonic() > sent_s + 1:
                answered, sent_s = len(own), time.monotonic()
                driver.send()
            return next((p for p in (from_message(Presence, m) for m in messages[sent:]) if is_met(p)), None)

        found = observer.until(find, what)
        assert isinstance(found, Presence)
        return found

    faces = {"faces": True, "publish_hri": True}
    with camera(domain_id, **faces) as process, NodeProcess(["people"], None, domain_id, other):
        driver = Driver(observer, START_NS)
        driver.show(face_image())
        first = until(lambda p: p.faces, "a face")
        mine = next(faces for faces in (from_message(Presence, m).faces for m in own) if faces)
        for read, seen in zip(first.faces, mine, strict=True):
            for name in ("left_ratio", "top_ratio", "width_ratio", "height_ratio", "confidence"):
                assert getattr(read, name) == pytest.approx(getattr(seen, name), abs=1e-5)
        assert (first.source_topic, first.persons) == ("/humans/faces/tracked", ())
        ids = face_ids()
        assert len(ids) == len(mine) == 1
        later = until(lambda p: p.stamp_ns > first.stamp_ns + 5 * NS_PER_S, "the face for longer")
        assert (len(later.faces), later.since_ns, face_ids()) == (1, first.since_ns, ids)
        driver.show(scene())
        until(lambda p: p.state is PresenceState.ABSENT and not p.faces, "nobody")
        observer.until(lambda: not face_ids(), "the end of the face's topics")
        driver.show(face_image())
        until(lambda p: p.faces, "the same face again")
        assert face_ids()
        assert face_ids().isdisjoint(ids)
        observer.change_state("camera", label="deactivate")
        observer.until(lambda: not face_ids(), "no topic of a face while inactive")
        assert process.is_running()


@pytest.mark.ros
def test_faces_that_are_not_detected_cannot_be_published(domain_id: int) -> None:
    with (
        pytest.raises(NodeProcessError, match="publish_hri: it needs faces: true"),
        camera(domain_id, publish_hri=True),
    ):
        pass
