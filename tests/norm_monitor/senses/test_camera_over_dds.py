"""The camera node over real DDS keeps what the pure path keeps of the same bag, and `tactful see` says so."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from camera_messages import PERIOD_NS, START_NS, compressed, scene

from norm_core.bags.reader import BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.frame import Frame
from norm_core.ledger import Ledger
from norm_core.presence import Presence
from norm_core.time import ReplayClock, split_stamp
from norm_monitor.senses.camera import Camera
from norm_monitor.senses.picture import picture_of
from sim_replays.processes import NodeProcess

TOPIC = "/camera/image_raw/compressed"
DOMAIN = 67
COUNT, CORRUPT = 195, (0, 121, 122)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """6.5 s at 30 Hz; some of the frames that would be kept are damaged."""
    jpeg = compressed(0, scene(640, 480)).data
    with BagWriter(tmp_path / "bag") as writer:
        for index in range(COUNT):
            stamp_ns = START_NS + index * PERIOD_NS
            sec, nanosec = split_stamp(stamp_ns)
            stamp = make("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
            header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})
            data = jpeg[:1000] if index in CORRUPT else jpeg
            values = {"header": header, "format": "jpeg", "data": data}
            writer.write_message(TOPIC, make("sensor_msgs/msg/CompressedImage", values), stamp_ns)
    return tmp_path / "bag"


def kept_by_the_pure_path(bag: Path) -> list[Frame]:
    camera = Camera(TOPIC, ReplayClock(), Ledger())
    with BagReader(bag) as reader:
        frames = [camera.see(picture_of(reader.decode(message))) for message in reader.messages([TOPIC])]
    return [frame for frame in frames if frame]


@pytest.mark.ros
def test_the_node_keeps_what_the_pure_path_keeps(bag: Path, tmp_path: Path) -> None:
    if find_spec("rclpy") is None:
        pytest.skip("rclpy is not installed")
    received = tmp_path / "received"
    topics = ["/tactful/frames", "/tactful/presence"]
    with (
        NodeProcess(["camera"], {"camera": {"topic": TOPIC}}, DOMAIN),
        NodeProcess(["bag_recorder"], {"bag_recorder": {"bag": str(received), "topics": topics}}, DOMAIN),
        NodeProcess(["bag_player"], {"bag_player": {"bag": str(bag)}}, DOMAIN) as player,
    ):
        assert player.wait(60) == 0
    with BagReader(received) as reader:
        records = [reader.decode(message) for message in reader.messages(topics)]
    # The first seconds may fall into discovery; from the first frame on, all must be the same to the byte.
    frames = [record for record in records if isinstance(record, Frame)]
    assert len(frames) >= 3
    assert frames == kept_by_the_pure_path(bag)[-len(frames) :]
    presences = [record.stamp_ns for record in records if isinstance(record, Presence)]
    assert presences[-3:] == [frame.stamp_ns for frame in frames[-3:]]


def test_see_tells_frames_and_faults(bag: Path) -> None:
    command = [sys.executable, "-m", "tactful_cli", "see", str(bag), "--json", "--no-faces"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert told["images"] == COUNT and told["faults"] == {"decode_failures": len(CORRUPT)}
    stamps = [frame["stamp_ns"] for frame in told["frames"]]
    assert stamps == [frame.stamp_ns for frame in kept_by_the_pure_path(bag)]
