"""The shipped profiles of robots against stand-ins with the topics and types of each public bridge."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from norm_core.runtime.time import s_to_ns
from tactful_cli.up.profile import SHIPPED, load
from tests.acceptance.tactful_up import run_up
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import NAOQI, ROS_DRIVERS, Definitions, build_once, environment

# As qtrobot-service-hub-gateway-ros defines it.
QTROBOT: Definitions = {
    "qtrobot_interfaces": {
        "AudioFrameRaw": "std_msgs/Header header\nuint32 sample_rate\nuint8 channels\nuint8 sample_width\nuint8[] data"
    }
}
ENCOUNTER = SHIPPED.parents[2] / "norm_monitor/encounters/shipped/kiosk_directions"
QUESTION_END, QUIET = 46, 10  # in tenths of a second
IMAGE, STRING = "sensor_msgs/msg/CompressedImage", "std_msgs/msg/String"


BRIDGES = {  # what each publishes, and its robot's words
    "pepper": {
        "/audio": "naoqi_bridge_msgs/msg/AudioBuffer",
        "/speech": STRING,
        "/camera/front/image_raw/compressed": IMAGE,
    },
    "qtrobot": {
        "/qtrobot/mic/int/audio/ch0/stream": "qtrobot_interfaces/msg/AudioFrameRaw",
        "/robot_words": STRING,
    },
    "realsense_respeaker": {
        "/audio": "audio_common_msgs/msg/AudioData",
        "/robot_words": STRING,
        "/camera/camera/color/image_raw/compressed": IMAGE,
    },
}


def sound_of(make: Maker, type_name: str, stamp_ns: int, samples: Any) -> Any:
    """A tenth of a second of sound, 16 kHz in mono, as the bridge publishes it."""
    fields: dict[str, Any] = {"data": np.frombuffer(samples.tobytes(), np.uint8)}
    if type_name.endswith("AudioBuffer"):  # 48 kHz and four microphones
        fields = {"frequency": 48_000, "channel_map": np.array([0, 2, 1, 4], np.uint8), "data": np.repeat(samples, 12)}
    if type_name.endswith("AudioFrameRaw"):
        fields |= {"sample_rate": 16_000, "channels": 1, "sample_width": 16}
    if not type_name.endswith("AudioData"):
        fields["header"] = make.header(stamp_ns)
    return make(type_name, fields)


def encounter(make: Maker, topics: dict[str, str]) -> Iterator[tuple[int, str, Any]]:
    """A person's question of a shipped encounter, which the robot answers after ten seconds."""
    with BagReader(ENCOUNTER) as bag:
        start_ns = (bag.bounds_ns or (0, 0))[0]
        chunks = [bag.decode(stored).audio.data.tobytes() for stored in bag.messages({"/audio"})]
        jpeg = next(bag.decode(stored).data for stored in bag.messages({"/camera/image_raw/compressed"}))
    for topic, type_name in topics.items():
        if type_name == STRING:
            yield start_ns + s_to_ns(14.0), topic, make(STRING, {"data": "The bridge is behind the church."})
            continue
        for tenth in range(0, 240, 10 if type_name == IMAGE else 1):
            stamp_ns = start_ns + tenth * s_to_ns(0.1)
            if type_name == IMAGE:
                message = make(IMAGE, {"header": make.header(stamp_ns), "format": "jpeg", "data": jpeg})
            else:  # after the question comes the room's noise, as before it
                samples = np.frombuffer(chunks[tenth if tenth < QUESTION_END else tenth % QUIET], "<i2")
                message = sound_of(make, type_name, stamp_ns, samples)
            yield stamp_ns + s_to_ns(0.1), topic, message


@pytest.mark.parametrize("name", BRIDGES)
def test_the_error_in_a_bridges_bag_is_flagged(name: str, tmp_path: Path) -> None:
    make = Maker({**ROS_DRIVERS, **NAOQI, **QTROBOT})
    bag = write(tmp_path / "bag", make, encounter(make, BRIDGES[name]))
    ears = load(name).parameters["ears"]
    result = tactful(
        "flags", bag, "--topic", ears["audio_topic"], "--robot-topic", ears["robot_speech_topic"], "--json"
    )
    assert result.returncode == 0, result.stderr
    errors = {flag["cue_id"] for flag in json.loads(result.stdout) if flag["polarity"] == "error"}
    assert errors & {"response_delay", "no_response"}, result.stdout + result.stderr


def test_nao_has_the_topics_of_pepper() -> None:
    assert load("nao").parameters == load("pepper").parameters


PUBLISH = """
import sys, time, rclpy
from importlib import import_module
rclpy.init()
node = rclpy.create_node("bridge")
types = [(topic, name.split("/")) for topic, name in (entry.split("=") for entry in sys.argv[1:])]
types = [(topic, getattr(import_module(f"{package}.{kind}"), name)) for topic, (package, kind, name) in types]
publishers = [(node.create_publisher(type_, topic, 10), type_) for topic, type_ in types]
while True:
    for publisher, type_ in publishers:
        publisher.publish(type_())
    time.sleep(0.1)
"""


@pytest.mark.ros
@pytest.mark.parametrize(("name", "definitions"), [("qtrobot", QTROBOT), ("realsense_respeaker", ROS_DRIVERS)])
def test_the_check_accepts_a_bridges_topics(
    name: str,
    definitions: Definitions,
    tmp_path_factory: pytest.TempPathFactory,
    domain_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in environment(build_once(tmp_path_factory, definitions)).items():
        monkeypatch.setenv(variable, value)
    topics = [f"{topic}={type_}" for topic, type_ in BRIDGES[name].items()]
    bridge = subprocess.Popen([sys.executable, "-c", PUBLISH, *topics])
    try:
        checked = run_up(name, "--check")
    finally:
        bridge.kill()
        bridge.wait()
    assert checked.returncode == 0, checked.stdout + checked.stderr
