"""Bags of conversations, written by the rosbags library alone, as `ros2 bag record` leaves them."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.foreign_bag import Maker, write

START_NS = 1_700_000_000 * 10**9
CAMERA, IMAGE_TYPE = "/camera/image_raw/compressed", "sensor_msgs/msg/CompressedImage"
ROBOT, USER = 1, 2
START, STOP = 0, 1
MARK_EVERY_S = 0.25  # the ears say ten times a second how far it is quiet

Said = tuple[int, float, float, str]  # the speaker, from and to in seconds, and the words


def user(start_s: float, end_s: float, text: str) -> Said:
    return USER, start_s, end_s, text


def robot(start_s: float, end_s: float, text: str) -> Said:
    return ROBOT, start_s, end_s, text


def write_talk(
    path: Path, talk: Iterable[Said], end_s: float, *, marked: bool = True, pictures: Sequence[bytes] = ()
) -> Path:
    """A bag of what was said, by the ears and by the robot's own account; marks tell of silence up to end_s.

    Pictures are JPEGs of a camera, one a second from the beginning on.
    """
    make = Maker({})

    def utterance(start_s: float, end_s: float, text: str, *, final: bool = True) -> Any:
        overlap = make("builtin_interfaces/msg/Duration", {"sec": 0, "nanosec": 0})
        times = {"start": make.header(_ns(start_s)).stamp, "end": make.header(_ns(end_s)).stamp, "overlap": overlap}
        who = {"utterance_id": f"u{start_s}", "speaker": USER} if final else {"utterance_id": "", "speaker": 0}
        times |= {"timing": 0, "late": False}
        what = {"text": text, "locale": "en", "words": [], "final": final, "source_topic": "/audio"}
        unknown = {"speaker_id": "", "confidence": math.nan, "no_speech_probability": math.nan}
        header = make.header(_ns(start_s))
        return make("norm_interfaces/msg/Utterance", {"header": header, **times, **who, **what, **unknown})

    def edge(at_s: float, state: int, start_s: float, text: str) -> Any:
        fields = {"speech_id": f"r{start_s}", "state": state, "text": text, "locale": "en", "estimated": False}
        return make("norm_interfaces/msg/RobotSpeech", {"header": make.header(_ns(at_s)), **fields})

    talk = list(talk)
    entries: list[tuple[float, str, Any]] = []
    for speaker, start_s, stop_s, text in talk:
        if speaker == ROBOT:
            entries += [
                (start_s, "/tactful/robot_speech", edge(start_s, START, start_s, text)),
                (stop_s, "/tactful/robot_speech", edge(stop_s, STOP, start_s, "")),
            ]
        else:
            entries.append((stop_s, "/tactful/utterances", utterance(start_s, stop_s, text)))
    for second, jpeg in enumerate(pictures):
        fields = {"header": make.header(_ns(second)), "format": "jpeg", "data": np.frombuffer(jpeg, np.uint8)}
        image = make(IMAGE_TYPE, fields)
        entries.append((second + 0.05, CAMERA, image))
    spoken = [(start_s, stop_s) for speaker, start_s, stop_s, _ in talk if speaker == USER]
    for tick in range(int(end_s / MARK_EVERY_S) + 1 if marked else 0):
        now_s = tick * MARK_EVERY_S
        quiet_s = min([now_s, *(start_s for start_s, stop_s in spoken if start_s <= now_s < stop_s)])
        entries.append((now_s, "/tactful/utterances", utterance(quiet_s, quiet_s, "", final=False)))
    return write(path, make, [(_ns(at_s), topic, message) for at_s, topic, message in entries])


def _ns(at_s: float) -> int:
    return START_NS + round(at_s * 10**9)
