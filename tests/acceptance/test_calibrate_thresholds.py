"""`tactful calibrate thresholds` on a coded study, and `calibrate sensors` on a bag with claps."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.frame import Frame
from norm_core.records.speech import RobotSpeech
from norm_monitor.replay.bag_driver import BagSenses
from norm_monitor.senses.camera.picture import picture_of
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from tests.acceptance.coded_bags import CHEER, SESSION_S, bagged_study, import_coding, refusal, run, talk
from tests.acceptance.conversation_bag import write_talk
from tests.calibration.sensor_bags import CAMERA, ROBOT, Room, clap_bag, flash_bag, speech_bag
from tests.command_line import tactful

SESSIONS = 12
TARGET = ("--false-errors-per-hour", "20")


@pytest.fixture(scope="module")
def uncoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose bags nobody has coded."""
    return bagged_study(tmp_path_factory.mktemp("study") / "museum", SESSIONS, "C-1", "C-2")


@pytest.fixture(scope="module")
def coded(uncoded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same study, coded by one coder, who marks cheer after bad news and no silence."""
    folder = shutil.copytree(uncoded, tmp_path_factory.mktemp("coded") / "museum")
    for number in range(1, SESSIONS + 1):
        import_coding(folder, f"S{number}", "C-1", CHEER)
    return folder


@pytest.fixture(scope="module")
def thresholds(coded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thresholds that are fitted on it."""
    folder = tmp_path_factory.mktemp("thresholds")
    written = folder / "museum.json"
    shown = run("calibrate", "thresholds", coded, *TARGET, "--out", folder / "run", "--write", written)
    assert "12 sessions, 0.4 h, 36 labelled errors; 4 shape the thresholds, 8 test them. Target: at most" in shown
    assert "others from 1.00" in shown  # the strictest row of the path
    return written


def flags(bag: Path, *options: object) -> list[Any]:
    found: list[Any] = json.loads(run("flags", bag, "--json", *options))
    return found


def errors(found: list[Any], attribute: str) -> int:
    return sum(flag["polarity"] == "error" and attribute in flag["attributes"] for flag in found)


def test_a_new_bag_has_fewer_false_errors_and_the_true_ones(thresholds: Path, tmp_path: Path) -> None:
    bag = write_talk(tmp_path / "new", talk(), SESSION_S)
    before, after = flags(bag), flags(bag, "--operating-point", thresholds)
    assert errors(before, "conversational_mechanics") >= 1
    assert errors(after, "conversational_mechanics") == 0
    assert errors(after, "emotions") > errors(before, "emotions")
    hashes = [{flag["provenance"]["config_sha256"] for flag in found} for found in (before, after)]
    assert not hashes[0] & hashes[1]
    assert all(flag["least_probability"] <= flag["probability"] for flag in after)


def test_thresholds_for_another_monitor_are_refused(thresholds: Path, tmp_path: Path) -> None:
    artefact = json.loads(thresholds.read_text(encoding="utf-8"))
    bag = write_talk(tmp_path / "new", talk()[:3], 20)
    for changes, told in (
        ({"made_with": {**artefact["made_with"], "weights": "others"}}, "differs from what runs here in weights"),
        ({"by_attribute": {"charm": 0.5}}, "is not a thresholds artefact"),
        ({"kind": "unit weights"}, "is not a thresholds artefact of format 1"),
    ):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**artefact, **changes}), encoding="utf-8")
        told_by = refusal("flags", bag, "--operating-point", other)
        assert told in told_by
        assert "calibrate thresholds" in told_by


@pytest.mark.parametrize("target", [(), (*TARGET, "--precision", "0.9"), ("--precision", "nan"), ("--precision", "1")])
def test_a_target_that_is_none_is_refused(coded: Path, target: tuple[str, ...]) -> None:
    assert "--precision" in refusal("calibrate", "thresholds", coded, *target)


def test_what_would_count_twice_is_refused(coded: Path, tmp_path: Path) -> None:
    again = shutil.copytree(coded, tmp_path / "museum")
    assert "give one study another name" in refusal("calibrate", "thresholds", coded, again, *TARGET)


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
