"""A robot of which only the sound that it plays is known."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace as Fields
from typing import Any

import numpy as np
import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, SpeechContent
from norm_core.records.stamps import join_stamp
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.senses.microphone.audio_message import read_sound_file
from norm_monitor.senses.robot_voice.robot_messages import detect_speech_content
from norm_monitor.senses.speech.whisper import Whisper
from tests.foreign_bag import int16
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS

HERE = Path(__file__).parent
RATE_HZ, CHUNK = 16_000, 1_600
MIC, OUT = "/mic", "/robot_audio"
CONVERSATION: list[dict[str, Any]] = json.loads((HERE / "conversation.json").read_text(encoding="utf-8"))
ROBOT = [turn for turn in CONVERSATION if turn["speaker"] == "robot"]


@pytest.fixture(scope="module")
def whisper() -> Whisper:
    return Whisper(CONFIG.whisper)


@pytest.fixture(scope="module")
def sound() -> Any:
    """Two turns of the robot, and two of a person."""
    return int16(np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(HERE / "conversation.flac")]))


def message(first: int, samples: Any) -> Fields:
    """A naoqi AudioBuffer."""
    sec, nanosec = divmod(START_NS + first * NS_PER_S // RATE_HZ, NS_PER_S)
    header = Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id="")
    return Fields(header=header, frequency=RATE_HZ, channel_map=[0], data=samples)


def stream(sound: Any, *, as_feedback: bool = False) -> Iterator[tuple[str, Fields]]:
    """What the microphone hears, and what the robot plays while it speaks."""
    for first in range(0, len(sound), CHUNK):
        part = message(first, sound[first : first + CHUNK])
        if any(turn["start_s"] - 0.3 < first / RATE_HZ < turn["end_s"] + 0.1 for turn in ROBOT):
            yield OUT, Fields(feedback=Fields(audio=part)) if as_feedback else part
        yield MIC, part


def taken(ears: Ears, topic: str, sent: Fields) -> list[HeardRecord]:
    stamp = getattr(sent, "feedback", Fields(audio=sent)).audio.header.stamp
    arrival_ns = join_stamp(stamp.sec, stamp.nanosec) + CHUNK * NS_PER_S // RATE_HZ
    due = ears.advance(arrival_ns)
    return [
        *due,
        *(ears.take_audio(sent, arrival_ns) if topic == MIC else ears.take_robot_speech(sent, arrival_ns, topic)),
    ]


def in_one_thread(whisper: Whisper, sound: Any, *, as_feedback: bool = False) -> list[HeardRecord]:
    ears = Ears(CONFIG, HealthLog(), whisper, MIC)
    sent = [state for utterance in stream(sound, as_feedback=as_feedback) for state in taken(ears, *utterance)]
    return [*sent, *ears.end_input()]


def played_alone(ears: Ears, sound: Any) -> list[HeardRecord]:
    """What the robot's sound gives, without a sound of anybody else."""
    return [state for topic, utterance in stream(sound) if topic == OUT for state in taken(ears, topic, utterance)]


def turns(heard: list[HeardRecord]) -> tuple[Turn, ...]:
    return turns_of(
        (), [utterance for utterance in heard if isinstance(utterance, RobotSpeech)], START_NS + 60 * NS_PER_S
    )


@pytest.mark.parametrize("as_feedback", [False, True])
def test_the_robots_sound_gives_its_times_and_words(whisper: Whisper, sound: Any, as_feedback: bool) -> None:
    played = turns(in_one_thread(whisper, sound, as_feedback=as_feedback))
    for turn, expected in zip(played, ROBOT, strict=True):
        assert abs(turn.start_ns - START_NS - s_to_ns(expected["start_s"])) < 0.3 * NS_PER_S
        assert abs(turn.end_ns - START_NS - s_to_ns(expected["end_s"])) < 0.3 * NS_PER_S
        assert turn.text.split()[-2:] == expected["text"].split()[-2:]


def test_robot_audio_ends_without_further_sound(whisper: Whisper, sound: Any) -> None:
    ears = Ears(CONFIG, HealthLog(), whisper, MIC)
    heard = played_alone(ears, sound)
    assert turns(heard)[-1].ongoing
    heard += ears.advance(START_NS + 14 * NS_PER_S)
    assert not turns(heard)[-1].ongoing
    assert turns(heard)[-1].end_ns < START_NS + 11 * NS_PER_S


def test_stated_words_replace_the_transcript_of_robot_audio(whisper: Whisper, sound: Any) -> None:
    ears = Ears(CONFIG, HealthLog(), whisper, MIC)
    list(ears.take_robot_speech(Fields(data="Seven."), START_NS - 9 * NS_PER_S, "/said"))
    heard = [*played_alone(ears, sound), *ears.end_input()]
    assert [turn.text for turn in turns(heard)] == ["", ""]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (Fields(data=""), SpeechContent.WORDS),
        (Fields(data=False), SpeechContent.TIMES),
        (Fields(status_list=[]), SpeechContent.TIMES),
        (Fields(data=b"", layout=Fields(dim=[])), SpeechContent.SOUND),
        (Fields(data=b"", encoding="", width=0, height=0), SpeechContent.NOTHING),
        (Fields(incremental="", final=""), SpeechContent.NOTHING),
    ],
    ids=["String", "Bool", "GoalStatusArray", "UInt8MultiArray", "Image", "LiveSpeech"],
)
def test_a_message_type_shows_its_speech_content(message: Fields, content: SpeechContent) -> None:
    assert detect_speech_content(message) is content
