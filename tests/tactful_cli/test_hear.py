"""`tactful hear` on real bags, whole, cut short, foreign or without what is asked for, and the answers of `flags`."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.engines.reader.reader_setup import write_reader
from norm_core.engines.talk_reader import TalkReader, open_reader
from norm_core.models.store import hash_file
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.monitor import MonitorConfig
from norm_monitor.senses.microphone.audio_message import read_sound_file
from tactful_cli.flag_watch import FlagOptions
from tests.command_line import tactful
from tests.foreign_bag import Maker, int16, write
from tests.foreign_interfaces import NAOQI
from tests.norm_core.models.tiny_decoder import write_adapter, write_tiny_decoder
from tests.norm_monitor.senses.speech_path import START_NS, edges_of

SPEECH = Path(__file__).parents[1] / "norm_monitor/senses"
RATE_HZ, CHUNK = 16_000, 1_600
SCENE: dict[str, Any] = json.loads((SPEECH / "mixtures.json").read_text(encoding="utf-8"))[0]


def messages(make: Maker, sounds: tuple[str, ...] = ("/audio",)) -> list[tuple[int, str, Any]]:
    """Four seconds with the robot's echo in the second channel, its edges, a picture and a text beside them."""
    whole = np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(SPEECH / "mixtures.flac")])[: 4 * RATE_HZ]
    both = np.stack([np.zeros_like(whole), whole], axis=1)
    made: list[tuple[int, str, Any]] = []
    for first in range(0, len(both), CHUNK):
        stamp_ns = START_NS + first * NS_PER_S // RATE_HZ
        fields = {
            "header": make.header(stamp_ns),
            "frequency": RATE_HZ,
            "channel_map": np.array([0, 2], np.uint8),
            "data": int16(both[first : first + CHUNK]).ravel(),
        }
        made += [(stamp_ns, topic, make("naoqi_bridge_msgs/msg/AudioBuffer", fields)) for topic in sounds]
    made += [(edge.stamp_ns, "/tactful/robot_speech", make.of(edge)) for edge in edges_of([SCENE["robot"]])]
    image = {"header": make.header(START_NS), "format": "jpeg", "data": np.zeros(100, np.uint8)}
    made.append((START_NS, "/camera", make("sensor_msgs/msg/CompressedImage", image)))
    made.append((START_NS, "/notes", make("std_msgs/msg/String", {"data": "hello"})))
    return made


def hear(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tactful("hear", *arguments)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker(NAOQI)
    return write(tmp_path_factory.mktemp("bags") / "bag", make, messages(make))


def test_a_bag_of_foreign_definitions_tells_its_utterances(bag: Path) -> None:
    told = hear(str(bag), "--channel", "1", "--json")
    (row,) = json.loads(told.stdout)
    assert row["speaker"] == "robot"
    assert abs(row["start_s"] - SCENE["robot"]["start_s"]) < 0.12
    assert abs(row["end_s"] - SCENE["robot"]["end_s"]) < 0.12
    assert row["words"]
    assert set(row) >= {"speaker", "text", "start_s", "end_s", "confidence", "words"}
    assert told.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "/none"], "has no topic /none; it has /audio"),
        (["--topic", "/camera"], "which is not audio; the bag's audio topics: /audio"),
        (["--channel", "3"], "the sound has 2; name one from 0 to 1"),
    ],
)
def test_unusable_sound_of_a_bag_is_refused(bag: Path, arguments: list[str], said: str) -> None:
    told = hear(str(bag), *arguments)
    assert (told.returncode, told.stdout) == (2, "")
    assert said in " ".join(told.stderr.split())
    assert "Traceback" not in told.stderr


def test_of_two_microphones_one_must_be_named(tmp_path: Path) -> None:
    make = Maker(NAOQI)
    two = write(tmp_path / "two", make, messages(make, ("/left", "/right")))
    told = hear(str(two))
    assert told.returncode == 2
    assert "audio topics are /left, /right; name one with --topic" in " ".join(told.stderr.split())
    assert json.loads(hear(str(two), "--topic", "/right", "--channel", "1", "--json").stdout)


SHIPPED = Path(__file__).parents[2] / "norm_monitor" / "encounters" / "shipped"


def flags(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments)


def test_a_late_answer_is_heard_and_noted() -> None:
    result = flags(str(SHIPPED / "kiosk_directions"), "--topic", "/audio", "--json")
    assert result.returncode == 0, result.stderr
    late = [flag for flag in json.loads(result.stdout) if flag["cue_id"] == "response_delay"]
    assert late
    assert "old bridge" in late[0]["rationale"]
    assert late[0]["correction"]


def test_given_utterances_need_no_sound() -> None:
    chinese = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir() and path.name.startswith("zh_"))
    result = flags(str(chinese))
    assert result.returncode == 0, result.stderr
    assert re.search(r"\d turns?: \d errors?.* and \d+ competences?$", result.stdout)


@pytest.fixture
def reader_folder(tmp_path: Path) -> Path:
    """A talk reader of a tiny model."""
    write_tiny_decoder(tmp_path / "base.gguf")
    write_adapter(tmp_path / "adapter.safetensors", hash_file(tmp_path / "base.gguf"))
    write_reader(tmp_path / "base.gguf", tmp_path / "adapter.safetensors", tmp_path / "reader")
    return tmp_path / "reader"


def test_a_talk_reader_brings_its_weights_wherever_a_monitor_is_described(
    reader_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored run does not go on by another reader."""
    without = FlagOptions().settings()
    monkeypatch.setenv("TACTFUL_READER", str(reader_folder))
    settings, matcher = FlagOptions().settings(), EncoderMatcher.shipped()
    model = shipped_unit_model(has_reader=matcher.has_reader)
    assert model is MonitorConfig().unit_model(matcher)
    assert settings["weights"] == model.sha256() != without["weights"]
    assert settings["reader"] == TalkReader.open(reader_folder).sha256
    assert open_reader("auto") is open_reader("auto")
