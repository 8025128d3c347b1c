"""The parts of a robot's load on a machine, each run as its node runs it, alone and beside the others."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from norm_core.bags.reader import BagReader
from norm_core.engines.engine import Engine
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import NS_PER_S, ReplayClock, ns_to_s
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.context.meaning import Concepts, Meanings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.eyes import Eyes
from norm_monitor.judge.judge import JudgeConfig
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.senses.camera.frame_keeper import FrameConfig
from norm_monitor.senses.camera.picture import Picture
from norm_monitor.senses.faces.finder import FaceFinder
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode
from norm_monitor.senses.microphone.pcm import PcmFormat
from norm_monitor.senses.microphone.sound_file import chunks_of
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentConfig, SegmentStage
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from norm_monitor.windows.window_config import WindowConfig
from sim_replays.drivers.script_driver import records_of_script
from sim_replays.scenarios.library import HERE, encounters
from sim_replays.scenarios.records import AUDIO, CAMERA
from tactful_cli.models.judge_unit import time_judge

_MARKS_EVERY_NS = NS_PER_S // 10  # as the ears publish silence
_PAUSE_S = 0.5  # between two plays of the sound
_SHIPPED = HERE / "shipped" / "kiosk_directions"


@record
class PartTiming:
    """How long a part takes, over `count` runs."""

    count: int
    p50_ms: float
    p95_ms: float
    mean_ms: float

    @classmethod
    def of(cls, taken_ms: Sequence[float]) -> "PartTiming":
        """Summarize durations, at least one."""
        p50, p95 = np.percentile(taken_ms, [50, 95])
        return cls(count=len(taken_ms), p50_ms=float(p50), p95_ms=float(p95), mean_ms=float(np.mean(taken_ms)))


class LoadPart(Protocol):
    """One kind of work, with the seconds of a cycle in which its jobs come in a live session."""

    name: str
    cycle_s: float
    due_s: Sequence[float]

    def once(self) -> float:
        """Do the next job, and return how many ms it took."""


class PicturePart:
    """A kept picture: decode, shrink, encode, and look for faces."""

    name = "picture"
    due_s: Sequence[float] = (0.0,)

    def __init__(self, settings: Mapping[str, Any], pictures: Sequence[bytes]) -> None:
        config = FrameConfig.model_validate({name: settings[name] for name in FrameConfig.model_fields})
        self.cycle_s = 1 / config.keep_hz
        folder = Path(settings["weights_folder"]) if settings["weights_folder"] else None
        finder = FaceFinder(folder, providers=settings["face_providers"]) if settings["faces"] else None
        self._eyes = Eyes("camera", HealthLog(), config, finder)
        self._pictures, self._stamp_ns = cycle(pictures), NS_PER_S

    def once(self) -> float:
        """Take the next picture, a period later than the last."""
        self._stamp_ns += round(self.cycle_s * NS_PER_S)
        data = next(self._pictures)
        picture = Picture(stamp_ns=self._stamp_ns, frame_id="c", encoding="jpeg", compressed=True, data=data)
        return _timed(lambda: list(self._eyes.take(picture)))


class TranscriptionPart:
    """A speech segment, as the ears cut it, through Whisper; the segments come at the pace of the speech."""

    name = "transcription"

    def __init__(self, settings: Mapping[str, Any], sound: Sequence[SoundChunk]) -> None:
        whisper = WhisperConfig(
            model=settings["model"],
            language=settings["language"],
            device=settings["whisper_device"],
            compute_type=settings["whisper_compute_type"],
        )
        hearing = HearingConfig(
            channel=settings["channel"],
            segments=SegmentConfig(partial_every_s=settings["partial_every_s"]),
            voice_providers=settings["voice_providers"],
            whisper=whisper,
        )
        self._whisper = Whisper(whisper)
        segments = list(_segments(AudioFrontEnd(hearing), sound))
        if not segments:
            raise TactfulError("--sound: no speech was found in it; name a file in which people speak")
        begin_ns = sound[0].stamp_ns or 0
        self._sound_s = ns_to_s((sound[-1].stamp_ns or 0) - begin_ns)
        self.due_s: Sequence[float] = tuple(ns_to_s(one.end_ns - begin_ns) for one in segments)
        self.cycle_s = self.due_s[-1] + _PAUSE_S
        self._segments = cycle(segments)

    def once(self) -> float:
        """Transcribe the next segment."""
        segment = next(self._segments)
        return _timed(lambda: self._whisper.recognize(segment))

    def real_time_factor(self, mean_ms: float) -> float:
        """Return the seconds that a second of the sound takes if each segment takes this long."""
        return len(self.due_s) * mean_ms / 1e3 / self._sound_s


class WindowPart:
    """A record that closes windows, through every cue, from the scripted talks of the development split."""

    name = "window"
    cycle_s = 1.0
    due_s: Sequence[float] = (0.0,)

    def __init__(self, settings: Mapping[str, Any], length_s: float) -> None:
        windows = {**settings["windows"], "sources": (UTTERANCES,), "lateness_s": 0, "length_s": length_s}
        self._config = MonitorConfig(windows=WindowConfig.model_validate(windows))
        self._encoder = SentenceEncoder()
        self._meaning = Meanings(self._encoder, Concepts.shipped())
        self._talks = cycle(encounters("development")[:20])
        self._windows = self._closings()

    def once(self) -> float:
        """Feed the monitor until windows close, and time the record that closes them."""
        return next(self._windows)

    def encode(self, number: int) -> float:
        """Time a sentence that was not encoded before."""
        return _timed(lambda: self._encoder.encode([f"The train to platform {number} leaves in a few minutes"]))

    def _closings(self) -> Iterator[float]:
        for talk in self._talks:
            clock = ReplayClock()
            monitor = Monitor(self._config, ThresholdTable.shipped(), self._meaning, clock)
            for now_ns, entry in records_of_script(talk, marks_every_ns=_MARKS_EVERY_NS)[0]:
                clock.advance_to(max(now_ns, clock.now_ns()))
                took_ms = _timed(partial(monitor.take, entry))
                if monitor.closed_windows():
                    yield took_ms


class JudgePart:
    """A unit, with all that the judge may ask about it."""

    name = "judge_unit"
    due_s: Sequence[float] = (0.0,)

    def __init__(self, engine: Engine, config: JudgeConfig, length_s: float) -> None:
        self._engine, self._config, self._length_s = engine, config, length_s
        self.cycle_s = 3600 / max(config.calls_per_hour, 1.0)
        self.answers: list[dict[str, Any]] = []

    def once(self) -> float:
        """Judge the next unit, in other words than the last."""
        number = len(self.answers)
        self.answers.append(time_judge(self._engine, self._config, number=number, length_s=self._length_s))
        return 1e3 * float(self.answers[-1]["unit_s"])


def alone(part: LoadPart, repeats: int) -> list[float]:
    """Time a part by itself, after a warm-up; in ms."""
    part.once()
    return [part.once() for _ in range(repeats)]


def shipped_pictures() -> list[bytes]:
    """Return the pictures of a shipped encounter."""
    with BagReader(_shipped("--picture")) as bag:
        return [bag.decode(stored).data.tobytes() for stored in bag.messages([CAMERA])]


def shipped_sound() -> list[SoundChunk]:
    """Return the sound of a shipped encounter."""
    with BagReader(_shipped("--sound")) as bag:
        return [decode(bag.decode(stored), PcmFormat()) for stored in bag.messages([AUDIO])]


def sound_in(path: Path) -> list[SoundChunk]:
    """Read a sound file; a stamp of zero would mean that none is set."""
    if not path.exists():
        raise TactfulError(f"--sound: {path}: there is no such file; check the path")
    return list(chunks_of(path, NS_PER_S))


def picture_in(path: Path) -> bytes:
    """Read a JPEG; raise TactfulError if it is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TactfulError(f"--picture: {path}: cannot be read: {error.strerror}; check the path") from error
    picture = Picture(stamp_ns=1, frame_id="c", encoding="jpeg", compressed=True, data=data)
    if not list(Eyes("camera", HealthLog(), FrameConfig(), None).take(picture)):
        raise TactfulError(f"--picture: {path}: is no whole JPEG; give a picture of the robot's camera as one")
    return data


def _shipped(option: str) -> Path:
    if not _SHIPPED.is_dir():
        raise TactfulError(f"{option}: this installation ships no recording to measure on; name a file of your own")
    return _SHIPPED


def _segments(front_end: AudioFrontEnd, sound: Iterable[SoundChunk]) -> Iterator[AudioSegment]:
    """Yield the segments that are transcribed: a final one is, unless it is the likely one before it."""
    ahead: tuple[int, int] | None = None
    found = [speech for chunk in sound for speech in front_end.take_sound(chunk, chunk.stamp_ns or 0)]
    for speech in [*found, *front_end.flush()]:
        segment = speech.segment
        key = (segment.sound_ns, segment.end_ns)
        if not (segment.final and key == ahead):
            yield segment
        ahead = key if segment.stage is SegmentStage.LIKELY else None


def _timed(work: Callable[[], object]) -> float:
    began_s = time.monotonic()
    work()
    return 1e3 * (time.monotonic() - began_s)
