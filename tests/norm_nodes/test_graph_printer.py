"""The stream of a graph as lines of JSON, over real DDS."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.observer import Observer

pytestmark = pytest.mark.ros

Stream = subprocess.Popen[str]


@pytest.fixture
def stream(domain_id: int) -> Iterator[Stream]:
    command = [sys.executable, "-m", "norm_nodes.tools.graph_printer", "/tactful", "--frames"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.terminate()


def publish(observer: Observer, topic: str, message: Any) -> None:
    """Publish once the stream reads the topic."""
    publisher = observer.node.create_publisher(type(message), topic, 10)
    observer.until(publisher.get_subscription_count, f"the stream to read {topic}")
    publisher.publish(message)


def read(stream: Stream) -> Any:
    assert stream.stdout
    return json.loads(stream.stdout.readline())


def test_a_picture_arrives_whole(observer: Observer, stream: Stream) -> None:
    from norm_interfaces.msg import Frame
    from sensor_msgs.msg import CompressedImage

    publish(observer, "/tactful/frames", Frame(tile=CompressedImage(format="jpeg", data=b"\xff\xd8\xff")))
    line = read(stream)
    assert (line["kind"], line["topic"]) == ("frame", "/tactful/frames")
    assert base64.urlsafe_b64decode(line["record"]["tile_jpeg"]) == b"\xff\xd8\xff"


def test_an_invalid_message_is_refused_with_its_fault(observer: Observer, stream: Stream) -> None:
    from norm_interfaces.msg import RobotSpeech

    publish(observer, "/tactful/robot_speech", RobotSpeech(state=9))
    line = read(stream)
    assert line["kind"] == "refused"
    assert "RobotSpeech.state is 9" in line["record"]["problem"]


def test_stream_ends_cleanly_on_a_signal(observer: Observer, stream: Stream) -> None:
    observer.until(lambda: observer.node.count_subscribers("/tactful/flags"), "the stream")
    stream.terminate()
    assert stream.wait() == 0
