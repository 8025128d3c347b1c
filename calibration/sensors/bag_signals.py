"""Read what a bag tells of the sensors' clocks: sound, pictures' brightness and motion, and the robot's told speech."""

from collections import Counter
from collections.abc import Collection

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.sensors.onsets import Series
from norm_core.bags.reader import BagReader
from norm_core.health.health_log import HealthLog
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.ears import Ears, Heard
from norm_monitor.senses.camera.picture import PictureFormatError, decode, picture_of
from norm_monitor.senses.microphone import audio_message
from norm_monitor.senses.microphone.block_stream import RATE_HZ, Block, Microphone
from norm_monitor.senses.microphone.pcm import SoundError
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError
from norm_monitor.senses.speech.audio_front_end import HearingConfig

LONGEST_S = 1800
_JUMP_NS = 100 * NS_PER_MS
_WATCHED_NS = 2 * NS_PER_S
_UNFIT, _DAMAGED = 0.2, 0.5  # the parts of messages from which a source is of no use
_SLOWEST_HZ = 8.0
_WIDTH, _HEIGHT = 96, 72


@record
class Sound:
    """The microphone's samples at RATE_HZ from a stamp on; or why they are of no use."""

    from_s: float = 0.0
    samples: NDArray[np.float32]
    clipped: int = 0
    why: str = ""


@record
class PictureSignals:
    """When pictures were taken, how bright they are, and how much moves from each to the next; or why not."""

    stamps_s: Series
    brightness: Series
    motion: Series
    why: str = ""


@record
class StatedSpeech:
    """When the robot says that it speaks; or why that is of no use."""

    starts_s: tuple[float, ...] = ()
    stops_s: tuple[float, ...] = ()
    spans_s: tuple[tuple[float, float], ...] = ()  # of what has a start and a stop
    why: str = ""


class _ClockWatch:
    """Notice a clock that is set while it is recorded: from then on, stamps lie elsewhere beside recording times."""

    def __init__(self) -> None:
        self._window_ns: int | None = None
        self._least_ns: list[int] = []

    def take(self, stamp_ns: int, recorded_ns: int) -> None:
        if self._window_ns is None or recorded_ns - self._window_ns >= _WATCHED_NS:
            self._window_ns = recorded_ns
            self._least_ns.append(recorded_ns - stamp_ns)
        self._least_ns[-1] = min(self._least_ns[-1], recorded_ns - stamp_ns)

    def explain(self, topic: str) -> str:
        jump_ns = max(self._least_ns, default=0) - min(self._least_ns, default=0)
        if jump_ns <= _JUMP_NS:
            return ""
        return (
            f"{topic}: its stamps move by {jump_ns / NS_PER_MS:.0f} ms beside the times of recording, so a clock was "
            "set meanwhile; synchronise the clocks (chrony), and record anew"
        )


def read_sound(bag: BagReader, topic: str, hearing: HearingConfig) -> Sound:
    """Return the sound of a topic at its stamps."""
    microphone, watch, faults = Microphone(hearing.channel), _ClockWatch(), Counter[str]()
    blocks: list[Block] = []
    count = 0
    for stored in bag.messages([topic]):
        count += 1
        try:
            chunk = audio_message.decode(bag.decode(stored), hearing.stated)
            blocks += microphone.feed(chunk, stored.stamp_ns)
        except SoundError as error:
            faults[str(error)] += 1
            continue
        if chunk.stamp_ns is not None:
            watch.take(chunk.stamp_ns, stored.stamp_ns)
    blocks += microphone.flush()
    nothing = np.zeros(0, np.float32)
    if faults.total() > _UNFIT * count:
        return Sound(samples=nothing, why=f"{topic}: {faults.most_common(1)[0][0]}")
    if not blocks:
        return Sound(samples=nothing, why=f"{topic}: holds no sound; record the microphone")
    counts = microphone.counts
    misfits = counts["audio_gaps"] + counts["audio_duplicated_or_late"] + counts["audio_stamp_jumps_ahead"]
    if misfits > _UNFIT * count:
        why = f"{topic}: its stamps do not fit its rate; set rate_hz and channels as its driver records"
        return Sound(samples=nothing, why=why)
    if why := watch.explain(topic):
        return Sound(samples=nothing, why=why)
    first_ns = min(block.stamp_ns for block in blocks)
    places = [(block.stamp_ns - first_ns) * RATE_HZ // NS_PER_S for block in blocks]
    if max(places) > LONGEST_S * RATE_HZ:
        raise TactfulError(f"{topic}: is longer than {LONGEST_S // 60} minutes; cut the bag to the part to measure on")
    samples = np.zeros(max(places) + len(blocks[0].samples), np.float32)
    for place, block in zip(places, blocks, strict=True):
        samples[place : place + len(block.samples)] = block.samples
    return Sound(from_s=first_ns / NS_PER_S, samples=samples, clipped=counts["audio_clipped"])


def read_pictures(bag: BagReader, topic: str) -> PictureSignals:
    """Return how bright a camera's pictures are, and how much moves in them."""
    watch = _ClockWatch()
    stamps: list[float] = []
    brightness: list[float] = []
    motion: list[float] = []
    before: NDArray[np.int16] | None = None
    damaged = not_later = 0
    for stored in bag.messages([topic]):
        picture = picture_of(bag.decode(stored))
        stamp_s = picture.stamp_ns / NS_PER_S
        try:
            grey = cv2.cvtColor(decode(picture), cv2.COLOR_BGR2GRAY)
        except PictureFormatError:
            damaged += 1
            continue
        watch.take(picture.stamp_ns, stored.stamp_ns)
        if stamps and stamp_s <= stamps[-1]:
            not_later += 1
            continue
        small = cv2.resize(grey, (_WIDTH, _HEIGHT), interpolation=cv2.INTER_AREA).astype(np.int16)
        if before is not None:
            change = small - before
            still = np.median(change)  # of the whole picture, as by exposure
            motion.append(float(np.abs(change - still).mean()) / (stamp_s - stamps[-1]))
        stamps.append(stamp_s)
        brightness.append(float(grey.mean()))
        before = small
    series = [np.asarray(stamp) for stamp in (stamps, brightness, motion)]
    return PictureSignals(
        stamps_s=series[0],
        brightness=series[1],
        motion=series[2],
        why=_explain_pictures(topic, series[0], damaged, not_later, watch),
    )


def _explain_pictures(topic: str, stamps_s: Series, damaged: int, not_later: int, watch: _ClockWatch) -> str:
    if damaged > _DAMAGED * (damaged + len(stamps_s)):
        return f"{topic}: {damaged} of {damaged + len(stamps_s)} pictures are damaged; read the driver's log"
    if len(stamps_s) < 2 and not_later:
        return f"{topic}: its stamps do not advance; set header.stamp in the driver"
    if len(stamps_s) < 2:
        return f"{topic}: holds no pictures; record the camera"
    rate_hz = 1 / float(np.median(np.diff(stamps_s)))
    if rate_hz < _SLOWEST_HZ:
        return f"{topic}: {rate_hz:.1f} pictures a second are too few; record at {_SLOWEST_HZ:g} or more"
    return watch.explain(topic)


def read_stated_speech(bag: BagReader, topics: Collection[str], hearing: HearingConfig) -> StatedSpeech:
    """Return when the robot's topics say that it starts and stops to speak."""
    health_log = HealthLog()
    ears = Ears(hearing, health_log)
    edges: list[Heard] = []
    for stored in bag.messages(topics):
        try:
            edges += ears.advance(stored.stamp_ns)
            edges += ears.take_robot_speech(bag.decode(stored), stored.stamp_ns, stored.topic)
        except (NotRobotSpeechError, SoundError) as error:
            return StatedSpeech(why=f"{stored.topic}: {error}")
    edges += ears.end_input()
    exact = [edge for edge in edges if isinstance(edge, RobotSpeech) and not edge.estimated]
    starts = {edge.speech_id: edge.stamp_ns / NS_PER_S for edge in exact if edge.state is SpeechEdge.START}
    stops = {edge.speech_id: edge.stamp_ns / NS_PER_S for edge in exact if edge.state is SpeechEdge.STOP}
    if edges and not starts:
        why = "the times of the robot's speech are estimated from its words; name a topic that times them, as a Bool"
        return StatedSpeech(why=why)
    return StatedSpeech(
        starts_s=tuple(sorted(starts.values())),
        stops_s=tuple(sorted(stops.values())),
        spans_s=tuple((starts[start], stops[start]) for start in starts if starts[start] < stops.get(start, 0.0)),
    )
