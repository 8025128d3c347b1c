"""Measure a bag's sensors against its microphone: offsets, levels and the robot's echo."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.sensors.alignment import Alignment, Event, Method, align_events, align_speech
from calibration.sensors.bag_signals import (
    PictureSignals,
    Sound,
    StatedSpeech,
    read_pictures,
    read_sound,
    read_stated_speech,
)
from calibration.sensors.onsets import HOP_S, Series, levels_db, onset_before, rises_db
from norm_core.bags.reader import BagReader
from norm_core.records.record import record
from norm_monitor.senses.microphone.block_stream import RATE_HZ
from norm_monitor.senses.microphone.pcm import Samples
from norm_monitor.senses.sensor_offsets import CAMERA, FORMAT, KIND, MICROPHONE, ROBOT_SPEECH, SensorOffsets, listed
from norm_monitor.senses.speech.audio_front_end import HearingConfig

_RINGS_DB = 6.0  # above the noise floor
_LONGEST_ECHO_S = 1.0
_LOUD_DBFS, _QUIET_DBFS, _NOISY_DB = -1.0, -45.0, 10.0


@record
class Topics:
    """The topics of a bag's sensors; empty for a sensor that it lacks."""

    microphone: str
    camera: str
    robot_speech: tuple[str, ...]  # as they are named
    robot_speech_in_bag: frozenset[str]  # with those of a named action


@record
class Levels:
    """The microphone's levels in dB full scale, and what to do about them."""

    noise_floor_dbfs: float
    loud_dbfs: float  # the level that 5 % of the time exceeds
    peak_dbfs: float
    clipped_messages: int
    advice: str


@record
class Echo:
    """What the microphone hears of the robot's own speech."""

    delay_ms: float
    level_dbfs: float
    rings_ms: float | None  # how long it lasts after the robot stops; None if no stop was heard


@record
class Measurement:
    """What a bag tells of its sensors."""

    topics: Topics
    offsets: dict[Method, Alignment]
    levels: Levels | None
    echo: Echo | None

    @property
    def camera(self) -> Alignment | None:
        """The camera's offset, of the method that tells it best."""
        offsets = [
            offset
            for name, offset in self.offsets.items()
            if name is not Method.SPEECH and offset.offset_ms is not None
        ]
        return min(offsets, key=lambda offset: offset.uncertainty_ms or 0, default=None)

    @property
    def robot_speech(self) -> Alignment | None:
        """The robot speech's offset."""
        offset = self.offsets.get(Method.SPEECH)
        return offset if offset and offset.offset_ms is not None else None

    def artefact(self, bag_name: str, digest: str) -> SensorOffsets:
        """Return what nodes load."""
        camera, robot = self.camera, self.robot_speech
        return SensorOffsets(
            kind=KIND,
            format=FORMAT,
            made_on=date.today().isoformat(),
            made_with={
                MICROPHONE: self.topics.microphone,
                CAMERA: self.topics.camera,
                ROBOT_SPEECH: listed(self.topics.robot_speech),
            },
            fitted_on={"bag": bag_name, "sha256": digest, "methods": ", ".join(self.offsets)},
            camera_ms=camera.offset_ms if camera else None,
            camera_uncertainty_ms=camera.uncertainty_ms if camera else None,
            robot_speech_ms=robot.offset_ms if robot else None,
            robot_speech_uncertainty_ms=robot.uncertainty_ms if robot else None,
        )


def measure(bag: BagReader, topics: Topics, methods: Collection[Method], hearing: HearingConfig) -> Measurement:
    """Measure what each method tells of a bag."""
    sound = Sound(samples=np.zeros(0, np.float32), why="the bag has no microphone; record its audio topic")
    if topics.microphone:
        sound = read_sound(bag, topics.microphone, hearing)
    sight = None
    offsets: dict[Method, Alignment] = {}
    echo = None
    for method in methods:
        if method is Method.SPEECH:
            offsets[method], echo = _of_speech(bag, topics, sound, hearing)
            continue
        if sight is None and topics.camera:
            sight = read_pictures(bag, topics.camera)
        offsets[method] = _of_pictures(method, sound, sight)
    return Measurement(topics=topics, offsets=offsets, levels=_levels(sound), echo=echo)


def _of_pictures(method: Method, sound: Sound, sight: PictureSignals | None) -> Alignment:
    if sight is None:
        return Alignment(why="the bag has no camera; record its topic")
    if why := sound.why or sight.why:
        return Alignment(why=why)
    heard = sound_onsets(sound.samples, sound.from_s)
    if method is Method.CLAP:
        return align_events(heard, closing_hands(sight.stamps_s, sight.motion), "claps", "closing hands")
    return align_events(heard, flashes(sight.stamps_s, sight.brightness), "clicks or beeps", "flashes")


def _of_speech(bag: BagReader, topics: Topics, sound: Sound, hearing: HearingConfig) -> tuple[Alignment, Echo | None]:
    if not topics.robot_speech:
        why = "the bag has no topic of the robot's speech; name it with --robot-topic"
        return Alignment(why=why), None
    stated = read_stated_speech(bag, topics.robot_speech_in_bag, hearing)
    if why := sound.why or stated.why:
        return Alignment(why=why), None
    alignment = align_speech(sound.samples, sound.from_s, stated.starts_s)
    if alignment.offset_ms is None:
        return alignment, None
    return alignment, _echo(levels_db(sound.samples), sound.from_s, stated, alignment.offset_ms)


def _levels(sound: Sound) -> Levels | None:
    if not sound.samples.any():
        return None
    frames = sound.samples[: len(sound.samples) // (RATE_HZ // 20) * (RATE_HZ // 20)].reshape(-1, RATE_HZ // 20)
    powers = np.square(frames.astype(np.float64)).mean(axis=1)
    levels = 10 * np.log10(powers[powers > 0])
    if not len(levels):
        return None
    floor, loud = (float(level_db) for level_db in np.percentile(levels, (10, 95)))
    peak = 20 * float(np.log10(np.abs(sound.samples).max()))
    advice = ""
    if sound.clipped or peak > _LOUD_DBFS:
        advice = "lower the microphone's gain: it clips"
    elif loud < _QUIET_DBFS:
        advice = "raise the microphone's gain: little is heard"
    elif loud - floor < _NOISY_DB:
        advice = "the room is noisy, or nothing was said; speech may be missed"
    return Levels(
        noise_floor_dbfs=round(floor, 1),
        loud_dbfs=round(loud, 1),
        peak_dbfs=round(peak, 1),
        clipped_messages=sound.clipped,
        advice=advice,
    )


def _echo(levels: Series, from_s: float, stated: StatedSpeech, offset_ms: float) -> Echo:
    floor = float(np.percentile(levels, 10))

    def place(at_s: float) -> int:
        return round((at_s + offset_ms / 1000 - from_s) / HOP_S)

    spoken = [levels[max(0, place(a)) : max(0, place(b))] for a, b in stated.spans_s]
    powers = np.power(10, np.concatenate([*spoken, np.zeros(0)]) / 10) if spoken else np.zeros(0)
    rings = []
    for stop_s in stated.stops_s:
        after = levels[max(0, place(stop_s)) : max(0, place(stop_s + _LONGEST_ECHO_S))]
        quiet = np.flatnonzero(after < floor + _RINGS_DB)
        if len(quiet):
            rings.append(float(quiet[0]) * HOP_S * 1000)
    return Echo(
        delay_ms=offset_ms,
        level_dbfs=round(10 * float(np.log10(powers.mean())), 1) if len(powers) else float(np.max(levels)),
        rings_ms=round(float(np.median(rings)), 1) if rings else None,
    )


_BEFORE, _AFTER = round(0.1 / HOP_S), round(0.01 / HOP_S)
_LEAST_DB, _DEVIATIONS = 8.0, 8.0
_APART_S = 0.3
_MOST = 60
_LEAST_STEP = 4.0  # levels of brightness of 255
_LONGEST_PERIODS = 2.5  # between two pictures; beyond, some are lost between them


def sound_onsets(samples: Samples, from_s: float) -> list[float]:
    """Return when something begins abruptly in the sound, at most the strongest ones."""
    levels = levels_db(samples)
    rises = rises_db(levels, _BEFORE, _AFTER)
    peaks = _peaks(rises, np.arange(len(rises), dtype=np.float64) * HOP_S, _LEAST_DB)
    return [from_s + onset_before(levels, place) * HOP_S for place in peaks]


def flashes(stamps_s: Series, brightness: Series) -> list[Event]:
    """Return between which pictures the brightness steps; a picture exposed meanwhile shows a part of the step."""
    if len(stamps_s) < 2:
        return []
    steps, period = np.abs(np.diff(brightness)), _period(stamps_s)
    events = []
    for place in _peaks(steps, stamps_s[1:], _LEAST_STEP):
        from_s, to_s = float(stamps_s[place]), float(stamps_s[place + 1])
        if to_s - from_s <= _LONGEST_PERIODS * period:
            events.append(Event(from_s=from_s, to_s=to_s))
    return events


def closing_hands(stamps_s: Series, motion: Series) -> list[Event]:
    """Return when motion stops most abruptly; `motion` is between each picture and the one before.

    Hands that stop between two pictures lower the motion twice, and the two falls tell by their sizes where between.
    """
    if len(stamps_s) < 4:
        return []
    falls = np.clip(motion[:-1] - motion[1:], 0, None)  # at stamps_s[1:-1]
    at_s, half = stamps_s[1:-1], _period(stamps_s) / 2
    both = falls[:-1] + falls[1:]
    events = []
    for place in _peaks(both, at_s[1:], 0.0):
        weights, times = falls[place : place + 2], at_s[place : place + 2]
        if times[1] - times[0] <= _LONGEST_PERIODS * 2 * half:
            middle = float((weights * times).sum() / weights.sum())
            events.append(Event(from_s=middle - half, to_s=middle + half, at_s=middle))
    return events


def _period(stamps_s: Series) -> float:
    return float(np.median(np.diff(stamps_s)))


def _peaks(strengths: NDArray[Any], at_s: NDArray[Any], least: float) -> Sequence[int]:
    """Return the places of the strongest values that stand out, apart from each other, in order."""
    if not len(strengths):
        return []
    usual = float(np.median(strengths))
    spread = float(np.median(np.abs(strengths - usual)))
    bar = max(least, usual + _DEVIATIONS * spread)
    chosen: list[int] = []
    for place in np.argsort(-strengths, kind="stable"):
        if strengths[place] <= bar or len(chosen) == _MOST:
            break
        if all(abs(at_s[place] - at_s[other]) >= _APART_S for other in chosen):
            chosen.append(int(place))
    return sorted(chosen)
