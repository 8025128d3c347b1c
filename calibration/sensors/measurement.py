"""Measure a bag's sensors against its microphone: offsets, levels and the robot's echo."""

from collections.abc import Collection
from datetime import date

import numpy as np

from calibration.sensors.alignment import Alignment, align_events, align_speech
from calibration.sensors.bag_signals import (
    PictureSignals,
    Sound,
    StatedSpeech,
    read_pictures,
    read_sound,
    read_stated_speech,
)
from calibration.sensors.events import closing_hands, flashes, sound_onsets
from calibration.sensors.method import Method
from norm_core.bags.reader import BagReader
from norm_core.records.record import record
from norm_monitor.senses.microphone.block_stream import RATE_HZ
from norm_monitor.senses.microphone.onsets import HOP_S, Series, levels_db
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
        told = [one for name, one in self.offsets.items() if name is not Method.SPEECH and one.offset_ms is not None]
        return min(told, key=lambda one: one.uncertainty_ms or 0, default=None)

    @property
    def robot_speech(self) -> Alignment | None:
        """The robot speech's offset."""
        found = self.offsets.get(Method.SPEECH)
        return found if found and found.offset_ms is not None else None

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
    found = align_speech(sound.samples, sound.from_s, stated.starts_s)
    if found.offset_ms is None:
        return found, None
    return found, _echo(levels_db(sound.samples), sound.from_s, stated, found.offset_ms)


def _levels(sound: Sound) -> Levels | None:
    if not sound.samples.any():
        return None
    frames = sound.samples[: len(sound.samples) // (RATE_HZ // 20) * (RATE_HZ // 20)].reshape(-1, RATE_HZ // 20)
    powers = np.square(frames.astype(np.float64)).mean(axis=1)
    levels = 10 * np.log10(powers[powers > 0])
    if not len(levels):
        return None
    floor, loud = (float(one) for one in np.percentile(levels, (10, 95)))
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
