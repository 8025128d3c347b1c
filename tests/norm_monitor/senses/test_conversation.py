"""Generated speech with known times: onsets, offsets and who spoke, alone and over one another.

mixtures.flac was made with espeak-ng by `make_mixtures.py` of commit a7c3fb0a.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from tests.norm_monitor.senses.speech_path import START_NS, edges_of, utterances

HERE = Path(__file__).parent


def told(name: str) -> list[dict[str, Any]]:
    return list(json.loads((HERE / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def whisper() -> Whisper:
    return Whisper(WhisperConfig())


@pytest.fixture(scope="module")
def mixtures(whisper: Whisper) -> list[Utterance]:
    edges = edges_of(scene["robot"] for scene in told("mixtures.json") if "robot" in scene)
    return utterances([*edges, *read_sound_file(HERE / "mixtures.flac", START_NS)], whisper)


def test_a_generated_conversation_is_heard_at_its_known_times(whisper: Whisper) -> None:
    truth = told("conversation.json")
    edges = edges_of(turn for turn in truth if turn["speaker"] == "robot")
    heard = utterances([*edges, *read_sound_file(HERE / "conversation.flac", START_NS)], whisper)
    assert [u.speaker.value for u in heard] == [turn["speaker"] for turn in truth]
    onsets = [abs(u.start_ns - START_NS - s_to_ns(t["start_s"])) for u, t in zip(heard, truth, strict=True)]
    offsets = [abs(u.end_ns - START_NS - s_to_ns(t["end_s"])) for u, t in zip(heard, truth, strict=True)]
    assert median(onsets) < 120 * NS_PER_MS
    assert median(offsets) < 120 * NS_PER_MS


def of_scene(heard: list[Utterance], scene: dict[str, Any]) -> list[Utterance]:
    first_ns = START_NS + s_to_ns(scene["at_s"])
    return [u for u in heard if first_ns <= u.start_ns < first_ns + 6 * NS_PER_S]


@pytest.mark.parametrize("index", range(8))
def test_echo_and_user_are_told_apart(mixtures: list[Utterance], index: int) -> None:
    """Where the echo is audible the robot is named, garbled or not; every user is heard, and nobody is invented."""
    scene = told("mixtures.json")[index]
    heard = of_scene(mixtures, scene)
    audible = "robot" in scene and scene["what"] != "barge-in without an echo"
    expected = [Speaker.ROBOT] * audible + [Speaker.USER] * ("user" in scene)
    assert [u.speaker for u in heard] == expected, scene["what"]
    if "user" in scene:
        user = heard[-1]
        assert abs(ns_to_s(user.end_ns - START_NS) - scene["user"]["end_s"]) < 0.15
        spoken_over = max(0.0, scene.get("robot", scene["user"])["end_s"] - ns_to_s(user.start_ns - START_NS))
        assert ns_to_s(user.overlap_ns) <= spoken_over + 0.01
