"""`tactful bag record` on types that only the graph's environment has; the bags are read by the rosbags library."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection, ConnectionExtRosbag2, QosDurability
from rosbags.rosbag2 import Reader

from tests.foreign_interfaces import Definitions, build_once, environment
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

CAFE: Definitions = {
    "cafe_msgs": {
        "Drink": "uint8 HOT=1\nuint8 COLD=2  # with ice\nuint8 kind\nstring<=20 name\nfloat64[3] mix",
        "Order": "# What a guest orders.\nstd_msgs/Header header\nDrink[<=4] drinks\ngeometry_msgs/Pose[] tables\n"
        "bool paid true\nbyte[] raw\nstring[] notes",
        "Bell": "char tone",
        "Nod": "",
    },
}
GUEST = """
import sys, time
import rclpy
from cafe_msgs.msg import Bell, Drink, Nod, Order
from geometry_msgs.msg import Pose
from norm_interfaces.action import SelectAction
from rclpy.qos import DurabilityPolicy, QoSProfile

rclpy.init()
node = rclpy.create_node("guest")
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
order = Order(drinks=[Drink(kind=Drink.COLD, name="mate", mix=[0.5, 0.25, 0.25])], notes=["no sugar"], raw=[b"\\x07"])
order.header.frame_id = "bar"
order.tables = [Pose()]
order.tables[0].position.x = 2.5
feedback = SelectAction.Impl.FeedbackMessage()
feedback.goal_id.uuid = list(range(16))
messages = {
    "/orders": (order, 10), "/bell": (Bell(tone=7), latched), "/nods": (Nod(), 10),
    "/choose/_action/feedback": (feedback, 10),
}
named = [messages[topic] for topic in sys.argv[1:]]
publishers = [node.create_publisher(type(one), topic, qos) for topic, (one, qos) in zip(sys.argv[1:], named)]
print("ready", flush=True)
while True:
    if all(publisher.get_subscription_count() for publisher in publishers):
        for publisher, (message, _) in zip(publishers, named):
            publisher.publish(message)
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (prefix,) = build_once(tmp_path_factory, CAFE)
    return prefix


def inside(prefix: Path | None) -> dict[str, str]:
    return {**os.environ, **(environment([prefix]) if prefix else {})}


@contextmanager
def running(command: list[str], prefix: Path | None, first: str) -> Iterator[subprocess.Popen[str]]:
    """A process in the environment of a prefix, from its first line of output until it is interrupted."""
    process = subprocess.Popen(command, env=inside(prefix), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(first), line + process.communicate(timeout=PATIENCE_S)[1]
        yield process
    finally:
        process.kill()
        process.wait()


def refused(prefix: Path | None, *arguments: str) -> str:
    """What the recorder says as it refuses to start."""
    command = [sys.executable, "-m", "tactful_cli", "bag", "record", *arguments]
    ended = subprocess.run(command, env=inside(prefix), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def recorded(prefix: Path, observer: Observer, bag: Path, *topics: str) -> str:
    """What the recorder says of a recording of a few messages of each topic."""
    observer.watch_status()
    guest = [sys.executable, "-c", GUEST, *(f"/{topic.lstrip('/')}" for topic in topics)]
    command = [sys.executable, "-m", "tactful_cli", "bag", "record", str(bag), *topics]
    with running(guest, prefix, "ready"), running(command, prefix, "running") as process:
        enough = 3 * len(topics)
        observer.until(lambda: observer.counted("messages_recorded") >= enough, "messages in the bag")
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, output
    return output


def contents(bag: Path) -> dict[str, tuple[Connection, Any]]:
    """The first message of each topic, by the rosbags library with the bag's own definitions alone."""
    messages: dict[str, tuple[Connection, Any]] = {}
    with AnyReader([bag]) as reader:
        for connection, _, data in reader.messages():
            if connection.topic not in messages:
                messages[connection.topic] = connection, reader.deserialize(data, connection.msgtype)
    return messages


def test_a_type_of_ones_own_plays_anywhere(cafe: Path, observer: Observer, tmp_path: Path) -> None:
    topics = ("/orders", "bell", "/nods", "/choose/_action/feedback")
    output = recorded(cafe, observer, tmp_path / "bag", *topics)
    assert "recording /orders (cafe_msgs/msg/Order)" in output
    messages = contents(tmp_path / "bag")
    assert set(messages) == {"/orders", "/bell", "/nods", "/choose/_action/feedback"}
    connection, order = messages["/orders"]
    assert (order.header.frame_id, order.drinks[0].name, order.notes, order.paid) == ("bar", "mate", ["no sugar"], True)
    assert list(order.drinks[0].mix) == [0.5, 0.25, 0.25]
    assert order.tables[0].position.x == 2.5
    assert "# with ice" in connection.msgdef.data
    assert messages["/bell"][1].tone == 7
    assert list(messages["/choose/_action/feedback"][1].goal_id.uuid) == list(range(16))
    with Reader(tmp_path / "bag") as bag:
        by_topic = {connection.topic: connection for connection in bag.connections}
    bell = by_topic["/bell"].ext
    assert isinstance(bell, ConnectionExtRosbag2)
    assert bell.offered_qos_profiles[0].durability is QosDurability.TRANSIENT_LOCAL
    assert all(connection.digest.startswith("RIHS01_") for connection in by_topic.values())


def test_a_type_that_is_not_installed_is_refused_at_once(cafe: Path, domain_id: int, tmp_path: Path) -> None:
    with running([sys.executable, "-c", GUEST, "/orders"], cafe, "ready"):
        output = refused(None, str(tmp_path / "bag"), "/orders")
    assert "/orders cannot be recorded, because cafe_msgs/msg/Order is not installed" in output
    assert not (tmp_path / "bag").exists()


def test_another_version_of_a_type_is_refused_at_once(cafe: Path, domain_id: int, tmp_path: Path) -> None:
    ours = shutil.copytree(cafe, tmp_path / "ours")
    stated = ours / "share/cafe_msgs/msg/Bell.json"
    stated.write_text(re.sub("RIHS01_[0-9a-f]{4}", "RIHS01_beef", stated.read_text()))
    with running([sys.executable, "-c", GUEST, "/bell"], cafe, "ready"):
        assert "another definition of cafe_msgs/msg/Bell" in refused(ours, str(tmp_path / "bag"), "/bell")


def test_of_all_topics_those_left_out_are_named_at_once(cafe: Path, observer: Observer, tmp_path: Path) -> None:
    statuses = observer.watch_status()
    everything = [sys.executable, "-m", "tactful_cli", "bag", "record", str(tmp_path / "bag")]
    with (
        running([sys.executable, "-c", GUEST, "/orders"], cafe, "ready"),
        running(everything, None, "running") as process,
    ):
        observer.until(lambda: any("/orders" in reason for s in statuses for reason in s.reasons), "the reason")
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0
    assert "/orders: not recorded, because cafe_msgs/msg/Order is not installed" in output


def test_a_named_topic_that_nobody_publishes_is_told(observer: Observer, tmp_path: Path) -> None:
    from std_msgs.msg import String

    words = observer.node.create_publisher(String, "/robot_words", 10)
    statuses = observer.watch_status()
    command = [sys.executable, "-m", "tactful_cli", "bag", "record", str(tmp_path / "bag"), "/robot_word"]
    with running(command, None, "running"):
        observer.until(lambda: any(s.reasons for s in statuses), "the reason")
    assert words.topic_name in statuses[-1].reasons[0]
    assert "/robot_word: nobody publishes it yet" in statuses[-1].reasons[0]
