"""The fast stage: audio messages to speech segments.

Sound and robot speech arrive in one order. A segment waits until the sound is far enough past it that all related robot
speech must have arrived, so that segments depend on stamps alone.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from faster_whisper.utils import get_assets_path
from pydantic import Field

from norm_core.engines.onnx.session import list_providers, open_session
from norm_core.engines.providers import PROVIDER_ORDER, OnFault, Provider
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech
from norm_core.runtime.config import Config
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode, read_format
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block, Microphone
from norm_monitor.senses.microphone.pcm import PcmFormat, Samples, SoundError
from norm_monitor.senses.microphone.sample_rate import SampleRateCheck
from norm_monitor.senses.robot_voice.robot_voice import RobotContext, RobotVoice
from norm_monitor.senses.speech.segmenter import AudioSegment, Segmenter
from norm_monitor.senses.speech.whisper import WhisperConfig

# The samples of the previous block that the model sees again.
_CONTEXT = 64


class Silero:
    """A model of the probability of speech in each block of a stream. Reset it for a new stream."""

    def __init__(self, providers: Sequence[Provider] = ("cpu",), on_fault: OnFault = lambda fault: None) -> None:
        self._session = open_session(
            Path(get_assets_path(), "silero_vad_v6.onnx"),
            providers=list_providers(providers),
            on_fault=on_fault,
            memory_arena=False,
        )
        self.reset()

    def reset(self) -> None:
        """Forget all earlier blocks."""
        self._h = np.zeros((1, 1, 128), np.float32)
        self._c = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)

    def __call__(self, block: Samples) -> float:
        """Return the probability of speech in the next block of the stream."""
        samples = np.concatenate((self._context, block))[None, :]
        probability, self._h, self._c = self._session.run(None, {"input": samples, "h": self._h, "c": self._c})
        self._context = block[-_CONTEXT:]
        # The last digits differ by processor.
        return round(float(np.asarray(probability).ravel()[0]), 3)


class HearingConfig(Config):
    """The settings of microphone, segments, robot voice and recognizer."""

    channel: int = Field(default=0, ge=-1, le=7, description="microphone channel, from 0; -1 for the mean of all")
    stated: PcmFormat = Field(default=PcmFormat(), description="the format of messages that state none")
    voice_providers: tuple[Provider, ...] = Field(
        default=("cpu",), description=f"ONNX Runtime providers for voice activity, {PROVIDER_ORDER}"
    )
    partial_every_s: float = Field(
        default=2.0, ge=0, le=30, description="interval of partial results during speech; 0 for none"
    )
    robot_lateness_ms: int = Field(
        default=300, ge=0, le=10_000, description="the longest delay of robot speech messages behind the sound"
    )
    whisper: WhisperConfig = WhisperConfig()


@record
class SpeechSegment:
    """A speech segment and the robot speech around it, which is complete for a final segment."""

    segment: AudioSegment
    robot: RobotContext
    is_robot_output: bool = False


class AudioFrontEnd:
    """A converter of messages into speech segments. It is fast, and for one thread."""

    def __init__(
        self, config: HearingConfig, on_fault: OnFault = lambda fault: None, *, comes_ahead: bool = False
    ) -> None:
        """Prepare for a stream. `comes_ahead` is for sound that comes before it is played."""
        self._stated = config.stated
        self._refused: SoundError | None = None
        self._microphone = Microphone(config.channel, comes_ahead=comes_ahead)
        silero = Silero(config.voice_providers, on_fault)
        self.segmenter = Segmenter(config.partial_every_s, silero, silero.reset)
        self.sample_rate = SampleRateCheck()
        self.robot = RobotVoice(config.robot_lateness_ms)
        self._waiting: deque[AudioSegment] = deque()
        self._sound_until_ns: int | None = None
        self.counts: Counter[str] = self._microphone.counts
        self.robot.counts = self.counts

    @property
    def is_timing_uncertain(self) -> bool:
        """Whether sound without stamps came so late recently that times by arrival are uncertain."""
        return self._microphone.is_uncertain

    @property
    def quiet_until_ns(self) -> int | None:
        """The stamp before which no later segment starts; None before any sound."""
        if self._sound_until_ns is None:
            return None
        under_way = [segment.start_ns for segment in self._waiting]
        speech_ns = self.segmenter.speech_since_ns
        return min([self._sound_until_ns, *under_way, *([] if speech_ns is None else [speech_ns])])

    def take_audio(self, message: Any, arrival_ns: int) -> list[SpeechSegment]:
        """Return the segments that an audio message completes. Raises SoundError if it is unusable."""
        try:
            if self._refused:
                raise self._refused
            chunk = decode(message, self._stated)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise
        return self.take_sound(chunk, arrival_ns)

    def set_audio_format(self, info: Any) -> None:
        """Set the format of raw bytes. Raises SoundError, here and for each later message, if it is unusable."""
        self._refused = None
        try:
            self._stated = read_format(info, self._stated)
        except SoundError as error:
            self._refused = error
            raise

    def take_sound(self, chunk: SoundChunk, arrival_ns: int) -> list[SpeechSegment]:
        """Return the segments that a chunk completes. Raises SoundError if it is unusable."""
        self.sample_rate.take(chunk, arrival_ns)
        try:
            return self._cut_blocks(self._microphone.feed(chunk, arrival_ns))
        except SoundError as error:
            self.counts[error.fault] += 1
            raise

    def advance(self, now_ns: int) -> list[SpeechSegment]:
        """Return the segments of late sound without stamps that are due because time passed."""
        return self._cut_blocks(self._microphone.advance(now_ns))

    def take_robot_speech(self, edge: RobotSpeech) -> None:
        """Add a start or stop of the robot, in the order of arrival of sound and robot speech."""
        self.robot.feed(edge, self._sound_until_ns)

    def flush(self) -> list[SpeechSegment]:
        """End the stream and any speech in progress."""
        self.sample_rate = SampleRateCheck()
        return [*self._cut_blocks(self._microphone.flush()), *self._hold(self.segmenter.flush()), *self._release(None)]

    def _cut_blocks(self, blocks: Iterable[Block]) -> list[SpeechSegment]:
        """Cut blocks into segments, and return those whose context is complete."""
        segments: list[SpeechSegment] = []
        for block in blocks:
            segments += self._hold(self.segmenter.feed(block))
            until_ns = self._sound_until_ns
            went_back = until_ns is not None and block.starts_anew and block.stamp_ns < until_ns
            self._sound_until_ns = block.stamp_ns + BLOCK_NS
            segments += self._release(None if went_back else self._sound_until_ns)
        return segments

    def _hold(self, segments: Iterable[AudioSegment]) -> list[SpeechSegment]:
        """Let final segments wait until their context is complete, and return the others."""
        unfinished = []
        for segment in segments:
            if segment.final:
                self._waiting.append(segment)
            else:
                unfinished.append(self._add_context(segment))
        return unfinished

    def _release(self, sound_until_ns: int | None) -> list[SpeechSegment]:
        """Return the waiting segments whose context is complete; all of them if the stream has ended."""
        released = []
        while self._waiting and (
            sound_until_ns is None or sound_until_ns >= self._waiting[0].end_ns + self.robot.waits_ns
        ):
            released.append(self._add_context(self._waiting.popleft()))
        return released

    def _add_context(self, segment: AudioSegment) -> SpeechSegment:
        return SpeechSegment(segment=segment, robot=self.robot.find_context(segment.start_ns, segment.end_ns))
