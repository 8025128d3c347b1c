"""The sound of a video: in the format that the bag states, and of consenting people alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from norm_core.records.speech import Speaker, Utterance
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import NAOQI, ROS_DRIVERS

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
# The second in which each voice speaks alone, by its label in the transcript.
VOICES = {"robot": 1, "p1": 3, "": 5, "p2": 7, "passer_by": 9}
BYTES, DATA = "std_msgs/msg/UInt8MultiArray", "audio_common_msgs/msg/AudioData"


def messages(make: Maker, type_name: str, *infos: dict[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """A tone in bytes of 32 bit, two channels, in messages of 0.1 s, each recorded at the end of its sound."""
    tone = np.repeat((2**29 * np.sin(np.arange(4_410) * 0.1)).astype(np.int32), 2).view(np.uint8)
    layout = {}
    if type_name == BYTES:
        layout = {"layout": make("std_msgs/msg/MultiArrayLayout", {"dim": [], "data_offset": 0})}
    for tenth in range(110):
        yield START_NS + (tenth + 1) * SECOND_NS // 10, "/mic/audio", make(type_name, {"data": tone, **layout})
    for index, info in enumerate(infos):
        values = {"channels": 2, "sample_rate": 44_100, "sample_format": "S32", "bitrate": 0, "coding_format": "WAVE"}
        yield START_NS + index, "/mic/audio_info", make("audio_common_msgs/msg/AudioInfo", values | info)
    for label, second in VOICES.items():
        stamp_ns = START_NS + second * SECOND_NS
        utterance = Utterance(
            stamp_ns=stamp_ns,
            utterance_id=f"u{second}",
            speaker=Speaker.ROBOT if label == "robot" else Speaker.USER,
            speaker_id="" if label == "robot" else label,
            text="some words",
            start_ns=stamp_ns,
            end_ns=stamp_ns + SECOND_NS,
        )
        yield stamp_ns, "/utterances", make.of(utterance)


def write_bag(path: Path, type_name: str, *infos: dict[str, Any]) -> Path:
    make = Maker({**NAOQI, **ROS_DRIVERS})
    return write(path, make, messages(make, type_name, *infos))


def film(bag: Path, video: Path, *options: str) -> str:
    completed = tactful("bag", "video", bag, video, *options)
    assert completed.returncode == 0, completed.stderr
    return " ".join((completed.stdout + completed.stderr).split())


def audible_seconds(video: Path) -> list[int]:
    with av.open(str(video)) as container:
        frames = list(container.decode(container.streams.audio[0]))
    sound = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    rate_hz = frames[0].sample_rate
    middles = [sound[round((second + 0.4) * rate_hz) :][: rate_hz // 5] for second in range(11)]
    return [second for second, middle in enumerate(middles) if np.abs(middle).max() > 0.05]


@pytest.mark.parametrize("type_name", [DATA, BYTES])
def test_bare_bytes_of_a_stated_format_are_heard(tmp_path: Path, type_name: str) -> None:
    bag = write_bag(tmp_path / "bag", type_name, {}, {})
    film(bag, tmp_path / "a.mp4", "--voice", "p1")
    assert audible_seconds(tmp_path / "a.mp4") == [VOICES["robot"], VOICES["p1"]]


@pytest.mark.parametrize("infos", [[], [{}, {"sample_rate": 16_000}], [{"coding_format": "mp3"}]])
def test_a_format_that_is_not_stated_is_assumed_and_reported(tmp_path: Path, infos: list[dict[str, Any]]) -> None:
    shown = film(write_bag(tmp_path / "bag", DATA, *infos), tmp_path / "a.mp4")
    assert "/mic/audio may not state its format" in shown
    assert "record the AudioInfo" in shown
