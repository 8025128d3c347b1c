"""Bags of a room in which hands clap, lights are switched and a robot speaks, with clocks that differ by a known time.

Nothing here is of the code under test: sound, echo, noise and pictures are made with numpy and OpenCV alone.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_monitor.senses.microphone.audio_message import chunks_of
from tests.foreign_bag import Maker, int16, write

RATE_HZ = 16_000
START_NS = 1_700_000_000 * 10**9
SENSES = Path(__file__).parents[1] / "norm_monitor" / "senses"
AUDIO, CAMERA, ROBOT = "/audio", "/camera/image_raw/compressed", "/robot/edges"
CHUNK = RATE_HZ // 10
Draw = Callable[[float], Any]  # a picture of the room at a time


@dataclass(frozen=True)
class Room:
    """How the room and its clocks are; an offset is what has to be added to the stamps of a source."""

    offset_ms: float = 120.0
    snr_db: float = 25.0
    rt60_s: float = 0.4
    fps: float = 30.0
    events: int = 8
    seed: int = 1
    shuffled: bool = False

    @property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def times(self, apart_s: float) -> Any:
        """When the events take place, at no regular distance."""
        return 1.5 + np.cumsum(apart_s + self.random.uniform(-0.3, 0.5, self.events)) - apart_s

    def told(self, times: Any) -> Any:
        """The times as another sensor states them; shuffled, they belong to nothing that is heard."""
        if self.shuffled:
            times = np.sort(np.random.default_rng(self.seed + 99).uniform(1, times[-1] + 1, len(times)))
        return times - self.offset_ms / 1000


@cache
def utterances() -> tuple[Any, ...]:
    """What a robot says, from its first audible sample to its last."""
    sound = np.concatenate([chunk.samples[:, 0] for chunk in chunks_of(SENSES / "conversation.flac")])
    spoken = json.loads((SENSES / "conversation.json").read_text(encoding="utf-8"))
    return tuple(trimmed(sound[int(one["start_s"] * RATE_HZ) : int(one["end_s"] * RATE_HZ)]) for one in spoken)


def trimmed(sound: Any) -> Any:
    audible = np.flatnonzero(np.abs(sound) > 0.05 * np.abs(sound).max())
    return sound[audible[0] : audible[-1] + 1]


def in_room(room: Room, dry: Any, loudness: float) -> Any:
    """Sound with the room's echo, which decays exponentially, and noise."""
    random = room.random
    length = int(room.rt60_s * RATE_HZ)
    echo = random.normal(size=length) * 10 ** (-3 * np.arange(length) / max(1, length)) * 0.06
    impulse = np.concatenate(([1.0], np.zeros(48), echo))
    size = 1 << int(np.ceil(np.log2(len(dry) + len(impulse))))
    wet = np.fft.irfft(np.fft.rfft(dry, size) * np.fft.rfft(impulse, size), size)[: len(dry)]
    pink = np.cumsum(random.normal(size=len(dry)))
    pink = pink - np.convolve(pink, np.ones(400) / 400, "same")
    noise = pink / pink.std() + 0.3 * random.normal(size=len(dry))
    return wet + noise / noise.std() * loudness * 10 ** (-room.snr_db / 20)


def clap_sound(room: Room, times: Any) -> Any:
    dry = np.zeros(int((times[-1] + 2) * RATE_HZ))
    for at in times:
        burst = room.random.normal(size=RATE_HZ // 20) * np.exp(-np.arange(RATE_HZ // 20) / 120)
        dry[int(at * RATE_HZ) : int(at * RATE_HZ) + len(burst)] += 0.5 * burst / np.abs(burst).max()
    return in_room(room, dry, 0.05)


def beep_sound(room: Room, times: Any) -> Any:
    dry = np.zeros(int((times[-1] + 2) * RATE_HZ))
    beep = 0.3 * np.sin(2 * np.pi * 1500 * np.arange(RATE_HZ // 8) / RATE_HZ)
    for at in times:
        dry[int(at * RATE_HZ) : int(at * RATE_HZ) + len(beep)] += beep
    return in_room(room, dry, 0.2)


def hands(times: Any) -> Draw:
    """Hands that move together ever faster, touch, rest for 0.3 s, and part slowly."""

    def gap_px(at: float) -> float:
        until = times[times > at]
        since = times[times <= at]
        coming = (until[0] - at) if len(until) else 9.0
        gone = (at - since[-1]) if len(since) else 9.0
        closing = 90 * min(1.0, coming / 0.45) ** 0.8 if coming < 0.45 else 90.0
        parting = 0.0 if gone < 0.3 else min(90.0, 100 * (gone - 0.3))
        return min(closing, parting)

    def draw(at: float) -> Any:
        picture = np.full((120, 240, 3), 60, np.uint8)
        gap = gap_px(at) / 2
        for left in (120 - gap - 20, 120 + gap):
            cv2.rectangle(
                picture, (round(16 * left), 16 * 40), (round(16 * (left + 20)), 16 * 80), (150, 170, 210), -1, shift=4
            )
        return picture

    return draw


def light(times: Any) -> Draw:
    """A light that each event switches."""
    return lambda at: np.full((60, 80, 3), 150 if np.count_nonzero(times <= at) % 2 else 60, np.uint8)


def audio_messages(make: Maker, sound: Any, jump: tuple[float, float] = (1e9, 0.0)) -> list[tuple[int, str, Any]]:
    """Chunks of a tenth of a second; from jump[0] seconds on the stamps lie jump[1] seconds elsewhere."""
    messages = []
    for first in range(0, len(sound) - CHUNK, CHUNK):
        at_s = first / RATE_HZ
        stamp_ns = ns(at_s + (jump[1] if at_s >= jump[0] else 0))
        layout = {"dim": [dimension(make, f"stamp_ns={stamp_ns}")], "data_offset": 0}
        data = np.frombuffer(int16(sound[first : first + CHUNK]).tobytes(), np.uint8)
        values = {"layout": make("std_msgs/msg/MultiArrayLayout", layout), "data": data}
        messages.append((ns(at_s + 0.13), AUDIO, make("std_msgs/msg/UInt8MultiArray", values)))
    return messages


def dimension(make: Maker, label: str) -> Any:
    return make("std_msgs/msg/MultiArrayDimension", {"label": label, "size": 0, "stride": 0})


def camera_messages(make: Maker, room: Room, draw: Draw, end_s: float, damaged: float = 0.0) -> list[Any]:
    """Pictures of the room; their stamps lie the offset before the times at which they were taken."""
    random, messages = room.random, []
    for at in np.arange(random.uniform(0, 1 / room.fps), end_s, 1 / room.fps):
        noisy = draw(at) + random.normal(0, 2, (1, 1, 1)) + random.normal(0, 3, draw(at).shape)
        jpeg = cv2.imencode(".jpg", np.clip(noisy, 0, 255).astype(np.uint8))[1]
        if random.uniform() < damaged:
            jpeg = jpeg[:200]
        header = make.header(ns(at - room.offset_ms / 1000))
        values = {"header": header, "format": "jpeg", "data": jpeg.ravel()}
        messages.append((ns(at + 0.04), CAMERA, make("sensor_msgs/msg/CompressedImage", values)))
    return messages


def ns(at_s: float) -> int:
    return START_NS + round(float(at_s) * 1e9)


def clap_bag(path: Path, room: Room, **changes: Any) -> Path:
    return pictures_bag(path, room, clap_sound, hands, **changes)


def flash_bag(path: Path, room: Room, **changes: Any) -> Path:
    return pictures_bag(path, room, beep_sound, light, **changes)


def pictures_bag(  # noqa: PLR0917
    path: Path, room: Room, sound_of: Any, draw_of: Any, damaged: float = 0.0, jump: tuple[float, float] = (1e9, 0.0)
) -> Path:
    make, times = Maker({}), room.times(2.0)
    sound = sound_of(room, times)
    seen = room.told(times) + room.offset_ms / 1000
    pictures = camera_messages(make, room, draw_of(seen), times[-1] + 1.5, damaged)
    return write(path, make, [*audio_messages(make, sound, jump), *pictures])


def speech_sound(room: Room) -> tuple[Any, list[tuple[float, float]]]:
    """The robot's utterances in the room, and when each begins and ends."""
    random, at, spans, said = room.random, 1.5, [], utterances()
    for number in range(room.events):
        length_s = len(said[number % len(said)]) / RATE_HZ
        spans.append((at, at + length_s))
        at += length_s + random.uniform(1.0, 2.2)
    dry = np.zeros(int((at + 2) * RATE_HZ))
    for number, (start_s, _) in enumerate(spans):
        one = said[number % len(said)]
        dry[int(start_s * RATE_HZ) : int(start_s * RATE_HZ) + len(one)] += 0.4 * one / np.abs(one).max()
    loudness = float(np.sqrt(np.mean(np.square(dry[dry != 0]))))
    return in_room(room, dry, loudness), spans


def speech_bag(path: Path, room: Room, *, heard: bool = True) -> Path:
    """A robot that speaks; unheard, the microphone brings the room's noise alone."""
    make = Maker({})
    sound, spans = speech_sound(room)
    if not heard:
        sound = in_room(room, np.zeros(len(sound)), 0.1)
    edges = []
    starts = room.told(np.asarray([start for start, _ in spans]))
    for number, (told_s, (start_s, stop_s)) in enumerate(zip(starts, spans, strict=True)):
        for state, at in ((SpeechEdge.START, told_s), (SpeechEdge.STOP, told_s + stop_s - start_s)):
            edge = RobotSpeech(stamp_ns=ns(at), speech_id=f"r{number}", state=state, text="")
            edges.append((ns(at + 0.05), ROBOT, make.of(edge)))
    return write(path, make, [*audio_messages(make, sound), *edges])
