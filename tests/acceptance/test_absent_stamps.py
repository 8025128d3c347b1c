"""Messages without a stamp, over DDS: refused, counted and named, and the nodes go on."""

from typing import Any

import pytest

from norm_core.records.frame import Frame
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import RobotSpeech, SpeechEdge, Utterance, make_silence_mark
from norm_monitor.replay.node_process import NodeProcess
from tests.node_records import camera_frame
from tests.norm_monitor.senses.camera_messages import compressed, scene
from tests.observer import Observer

pytestmark = pytest.mark.ros

TOPIC, AT_NS = "/eye/compressed", 1_700_000_000 * 10**9
RECORDS: dict[str, Utterance | RobotSpeech | Frame | Presence] = {
    "utterances": make_silence_mark(AT_NS, "/audio"),
    "robot_speech": RobotSpeech(stamp_ns=AT_NS, speech_id="s", state=SpeechEdge.START, text="Hello."),
    "frames": camera_frame(AT_NS, b"jpeg"),
    "presence": Presence(stamp_ns=AT_NS, source_topic="/eye", state=PresenceState.ABSENT),
}


def without_stamp(record: object) -> Any:
    from norm_nodes.base.convert import to_ros

    message = to_ros(record)
    message.header.stamp.sec, message.header.stamp.nanosec = -1, 0
    return message


def test_one_message_of_each_kind_without_a_stamp_ends_no_node(domain_id: int, observer: Observer) -> None:
    from norm_nodes.base.endpoint import SENSOR
    from sensor_msgs.msg import CompressedImage

    parameters: dict[str, dict[str, Any]] = {
        "camera": {"topic": TOPIC, "faces": False},
        "monitor": {"windows": {"sources": ["frames", "presence", "utterances"]}},
    }
    statuses = observer.watch_status()

    def send(publisher: Any, message: Any, words: str) -> None:
        """Send again and again, as what is sent before both know each other is lost, until the status says so."""

        def is_stated() -> bool:
            publisher.publish(message)
            return any(words in reason for status in statuses for reason in status.reasons)

        observer.until(is_stated, words)

    with NodeProcess(["camera", "monitor", "selector"], parameters, domain_id):
        for node in parameters:
            observer.meet(node)
        picture = CompressedImage(format="jpeg", data=compressed(0, scene()).data)
        picture.header.stamp.sec = -1
        camera = observer.node.create_publisher(CompressedImage, TOPIC, SENSOR)
        for topic, record in RECORDS.items():
            publisher = observer.publisher(type(record), topic)
            readers = 1 if topic == "robot_speech" else 2  # the selector reads all but this one
            observer.until(lambda: publisher.get_subscription_count() >= readers, topic)  # noqa: B023
            send(publisher, without_stamp(record), f"{type(record).__name__} states no stamp; let its publisher set it")
        send(camera, picture, "an image has no usable stamp")
        first = {status.instance_id for status in statuses}
        for node in (*parameters, "selector"):
            assert observer.state_of(node) == "active"
        assert len(first) == 3, "a node was started again"
        assert not observer.counted("callbacks_failed")
