"""`tactful calibrate sensors` from outside: a bag is measured, and what reads the file moves its stamps."""

import json
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.records.speech import RobotSpeech
from norm_monitor.senses.camera.picture import picture_of
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from sim_replays.drivers.bag_driver import BagSenses
from tests.calibration.sensor_bags import CAMERA, ROBOT, Room, clap_bag, flash_bag, speech_bag
from tests.command_line import tactful

ROOM = Room(offset_ms=150.0)
NS_PER_MS = 1_000_000


def frames(path: Path, sensor_offsets: str = "") -> list[int]:
    with BagReader(path) as bag:
        senses = BagSenses(bag, HearingConfig(), None, sensor_offsets=sensor_offsets)
        return [record.stamp_ns for _, record in senses.records() if isinstance(record, Frame)]


@pytest.fixture(scope="module")
def flashes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flash_bag(tmp_path_factory.mktemp("flashes") / "bag", ROOM)


def test_the_written_file_moves_the_stamps_of_pictures(flashes: Path, tmp_path: Path) -> None:
    written = tmp_path / "offsets.json"
    result = tactful("calibrate", "sensors", flashes, "--from", "flash", "--write", written, "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)["offsets"]["flash"]
    assert abs(told["offset_ms"] - 150) <= 20
    assert "set sensor_offsets of camera" in " ".join(result.stderr.split())
    with BagReader(flashes) as bag:
        taken = {picture_of(bag.decode(one)).stamp_ns for one in bag.messages([CAMERA])}
    shift_ns = round(told["offset_ms"] * NS_PER_MS)
    assert taken.issuperset(frames(flashes))
    assert taken.issuperset(stamp_ns - shift_ns for stamp_ns in frames(flashes, str(written)))


def test_an_offset_of_another_camera_is_refused(flashes: Path, tmp_path: Path) -> None:
    written = tmp_path / "offsets.json"
    assert tactful("calibrate", "sensors", flashes, "--from", "flash", "--write", written).returncode == 0
    plain = json.loads(written.read_text(encoding="utf-8"))
    plain["made_with"]["camera topic"] = "/other"
    written.write_text(json.dumps(plain), encoding="utf-8")
    refused = tactful("flags", flashes, "--sensor-offsets", written)
    assert refused.returncode == 2
    assert "differs from what runs here in camera topic" in " ".join(refused.stderr.split())


def test_what_cannot_be_told_is_not_written(tmp_path: Path) -> None:
    bag = clap_bag(tmp_path / "bag", Room(shuffled=True))
    written = tmp_path / "offsets.json"
    result = tactful("calibrate", "sensors", bag, "--from", "clap", "--write", written)
    assert result.returncode == 2
    assert "cannot tell: clap" in " ".join(result.stderr.split())
    assert not written.exists()
    assert tactful("calibrate", "sensors", bag, "--from", "clap").returncode == 1


def robot_edges(bag: Path, **offsets: Any) -> list[int]:
    with BagReader(bag) as reader:
        senses = BagSenses(reader, HearingConfig(), None, robot_topics=[ROBOT], **offsets)
        return [one.stamp_ns for _, one in senses.records() if isinstance(one, RobotSpeech)]


def test_the_written_file_moves_the_stamps_of_robot_speech(tmp_path: Path) -> None:
    bag, written = speech_bag(tmp_path / "bag", ROOM), tmp_path / "offsets.json"
    result = tactful("calibrate", "sensors", bag, "--robot-topic", ROBOT, "--write", written, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    told_ms = found["offsets"]["speech"]["offset_ms"]
    assert abs(told_ms - 150) <= 20
    assert found["echo"]["level_dbfs"] > found["levels"]["noise_floor_dbfs"]
    moved = robot_edges(bag, sensor_offsets=str(written))
    assert moved == [stamp_ns + round(told_ms * NS_PER_MS) for stamp_ns in robot_edges(bag)]
    again = tactful("hear", bag, "--robot-topic", ROBOT, "--sensor-offsets", written, "--json")
    assert again.returncode == 0, again.stderr
    assert {one["speaker"] for one in json.loads(again.stdout)} == {"robot"}
