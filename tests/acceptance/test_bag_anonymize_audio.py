"""Mute every voice of a shared bag but the robot's and those of consenting participants."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.speech import Speaker, Utterance
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import NAOQI, ROS_DRIVERS

SECOND_NS = 1_000_000_000
START_NS = 1_700_000_000 * SECOND_NS
# The second in which each voice speaks alone, by its label in the transcript.
VOICES = {"robot": 1, "p1": 3, "": 5, "p2": 7, "passer_by": 9}


def messages(make: Maker) -> Iterator[tuple[int, str, Any]]:
    tone = (8000 * np.sin(np.arange(16_000) * 0.1)).astype(np.int16)
    for second in range(11):
        stamp_ns = START_NS + second * SECOND_NS
        values = {"header": make.header(stamp_ns), "frequency": 16_000, "channel_map": np.zeros(1, np.uint8)}
        yield stamp_ns, "/audio", make("naoqi_bridge_msgs/msg/AudioBuffer", values | {"data": tone})
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


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker(NAOQI)
    return write(tmp_path_factory.mktemp("bags") / "session", make, messages(make))


@pytest.mark.parametrize(
    ("participants", "consenting", "audible"),
    [
        ([], [], ["robot"]),
        (["P-1"], [], ["robot"]),
        (["P-1"], ["P-1"], ["robot"]),
        (["P-1=p1"], [], ["robot"]),
        (["P-1=p1"], ["P-1"], ["robot", "p1"]),
        (["P-1=p1", "P-2"], [], ["robot"]),
        (["P-1=p1", "P-2=p2"], ["P-1"], ["robot", "p1"]),
        (["P-1=p1", "P-2=p2"], ["P-1", "P-2"], ["robot", "p1", "p2"]),
        (["P-1=p1,p2", "P-2=p2"], ["P-1"], ["robot", "p1"]),
    ],
)
def test_only_a_labelled_voice_of_a_consenting_participant_stays_audible(
    bag: Path, tmp_path: Path, participants: list[str], consenting: list[str], audible: list[str]
) -> None:
    options = [text for name in participants for text in ("--participant", name)]
    options += [text for name in consenting for text in ("--voice", name)]
    bags = [str(bag), str(tmp_path / "shared")]
    completed = tactful("bag", "anonymize", *bags, "--audio", "mute", *options)
    assert completed.returncode == 0, completed.stderr
    with BagReader(tmp_path / "shared") as reader:
        sound = [reader.decode(message).data for message in reader.messages(["/audio"])]
    assert [second for second, data in enumerate(sound) if np.abs(data).max() > 0] == [VOICES[v] for v in audible]
    without_utterance = [name for name in consenting if f"{name}=p" not in " ".join(participants)]
    noted = " ".join(completed.stderr.split())
    assert [name for name in consenting if f"{name}: no utterance has a person id of theirs" in noted] == (
        without_utterance
    )


def bare_messages(make: Maker, type_name: str, rate_hz: int, *infos: dict[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """A tone in bytes of 32 bit, two channels, in messages of 0.1 s, each recorded at the end of its sound."""
    tone = np.repeat((2**29 * np.sin(np.arange(rate_hz // 10) * 0.1)).astype(np.int32), 2).view(np.uint8)
    layout = {}
    if type_name == BYTES:
        layout = {"layout": make("std_msgs/msg/MultiArrayLayout", {"dim": [], "data_offset": 0})}
    for tenth in range(110):
        yield START_NS + (tenth + 1) * SECOND_NS // 10, "/mic/audio", make(type_name, {"data": tone, **layout})
    for index, info in enumerate(infos):
        values = {"channels": 2, "sample_rate": rate_hz, "sample_format": "S32", "bitrate": 0, "coding_format": "WAVE"}
        yield START_NS + index, "/mic/audio_info", make("audio_common_msgs/msg/AudioInfo", values | info)
    yield from (each for each in messages(make) if each[1] == "/utterances")


BYTES, DATA = "std_msgs/msg/UInt8MultiArray", "audio_common_msgs/msg/AudioData"
PROFILE = """/tactful/ears:
  ros__parameters: {audio_topic: mic/audio, sample_format: s32le, rate_hz: 44100, channels: 2}
"""


def anonymized(bag: Path, made: Path, *options: str, code: int = 0) -> str:
    completed = tactful("bag", "anonymize", bag, made, *options)
    assert completed.returncode == code, completed.stderr
    return " ".join((completed.stdout + completed.stderr).split())


def audible_seconds(bag: Path) -> list[int]:
    with BagReader(bag) as reader:
        sounds = [(message.stamp_ns, reader.decode(message)) for message in reader.messages(["/mic/audio"])]
    assert len(sounds) == 110
    loud = {(stamp_ns - SECOND_NS // 10 - START_NS) // SECOND_NS for stamp_ns, sound in sounds if sound.data.any()}
    return sorted(loud)


@pytest.mark.parametrize("type_name", [DATA, BYTES])
@pytest.mark.parametrize("source", ["info", "profile"])
def test_bare_bytes_of_a_known_format_are_muted(tmp_path: Path, type_name: str, source: str) -> None:
    make = Maker({**NAOQI, **ROS_DRIVERS})
    infos: list[dict[str, Any]] = [{}, {}] if source == "info" else []
    bag = write(tmp_path / "bag", make, bare_messages(make, type_name, 44_100, *infos))
    (tmp_path / "robot.yaml").write_text(PROFILE)
    profile = ["--profile", str(tmp_path / "robot.yaml")] if source == "profile" else []
    people = ["--participant", "P-1=p1", "--voice", "P-1"]
    shown = anonymized(bag, tmp_path / "new", "--audio", "mute", *people, *profile)
    assert audible_seconds(tmp_path / "new") == [VOICES["robot"], VOICES["p1"]]
    assert "/mic/audio: muted, 110 of 110 messages" in shown
    with BagReader(tmp_path / "new") as reader:
        there = {topic.topic for topic in reader.topics}
    assert there == {"/mic/audio", "/utterances", *(["/mic/audio_info"] if infos else [])}, (
        "who reads it needs its format"
    )
    refused = anonymized(bag, tmp_path / "kept", "--keep", "/mic/audio", *profile, code=2)
    assert "/mic/audio: holds" in refused
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("infos", [[], [{}, {"sample_rate": 16_000}], [{"coding_format": "mp3"}]])
def test_bare_bytes_of_no_one_format_are_left_out(tmp_path: Path, infos: list[dict[str, Any]]) -> None:
    make = Maker({**NAOQI, **ROS_DRIVERS})
    bag = write(tmp_path / "bag", make, bare_messages(make, DATA, 44_100, *infos))
    shown = anonymized(bag, tmp_path / "new", "--audio", "mute")
    assert "/mic/audio: 110 of 110 messages of sound were left out" in shown
    assert "--profile" in shown


def test_a_profile_that_states_no_sound_is_refused(tmp_path: Path) -> None:
    make = Maker({**NAOQI, **ROS_DRIVERS})
    bag = write(tmp_path / "bag", make, bare_messages(make, DATA, 44_100))
    for text, why in (
        ("/tactful/monitor: {ros__parameters: {}}", "/tactful/ears"),
        (PROFILE.replace("44100", "1"), "1 Hz is outside"),
        (PROFILE.replace("s32le", "x9"), "unknown"),
    ):
        (tmp_path / "robot.yaml").write_text(text)
        assert why in anonymized(bag, tmp_path / "new", "--profile", str(tmp_path / "robot.yaml"), code=2)
        assert not (tmp_path / "new").exists()
