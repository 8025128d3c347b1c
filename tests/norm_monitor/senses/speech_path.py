"""The speech path as tests run it: sounds and the robot's edges in, utterances out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd, HearingConfig, SpeechSegment
from norm_monitor.senses.speech.recognition import Recognizer

START_NS = 1_000 * NS_PER_S
CONFIG = HearingConfig(partial_every_s=0)


def edge(state: SpeechEdge, at_s: float, text: str = "", speech_id: str = "s") -> RobotSpeech:
    return RobotSpeech(stamp_ns=START_NS + s_to_ns(at_s), speech_id=speech_id, state=state, text=text)


def edges_of(turns: Iterable[dict[str, Any]]) -> list[RobotSpeech]:
    """Starts and stops of turns that tell text, start_s and end_s."""
    return [
        edge(state, turn[at], turn["text"] if state is SpeechEdge.START else "", f"s{index}")
        for index, turn in enumerate(turns)
        for state, at in ((SpeechEdge.START, "start_s"), (SpeechEdge.STOP, "end_s"))
    ]


def segments(
    events: Iterable[SoundChunk | RobotSpeech], config: HearingConfig = CONFIG, front_end: AudioFrontEnd | None = None
) -> Iterator[SpeechSegment]:
    front_end = front_end or AudioFrontEnd(config)
    for event in events:
        if isinstance(event, RobotSpeech):
            front_end.take_robot_speech(event)
        else:
            yield from front_end.take_sound(event, START_NS)
    yield from front_end.flush()


def utterances(
    events: Sequence[SoundChunk | RobotSpeech], recognizer: Recognizer, config: HearingConfig = CONFIG
) -> list[Utterance]:
    ears = Ears(config, HealthLog(), recognizer, "mic")
    results: list[Utterance] = []
    for event in events:
        if isinstance(event, RobotSpeech):
            assert list(ears.take_robot_speech(event, START_NS)) == [event]
        else:
            results += ears.take_sound(event, START_NS)
    return [speech for speech in (*results, *ears.end_input()) if isinstance(speech, Utterance) and speech.text]


class LoudIsSpeech:
    """Stands for voice activity: takes what is loud for speech."""

    def __init__(self, *_: object) -> None: ...

    def __call__(self, block: np.ndarray) -> float:
        return float(np.abs(block).max() > 0.1)

    def reset(self) -> None: ...
