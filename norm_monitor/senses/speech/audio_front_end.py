"""The quick stage: audio messages to segments of speech.

Sound and robot speech go in as they come, in one order. A segment is held back until the sound has gone so far past
it that all that bears on it must have come, so segments depend on stamps alone.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode, stated_by
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block, Microphone
from norm_monitor.senses.microphone.pcm import SoundError
from norm_monitor.senses.robot_voice.robot_voice import RobotContext, RobotVoice
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import AudioSegment, Segmenter
from norm_monitor.senses.speech.silero import Silero


@record
class SpeechSegment:
    """A segment of speech, and what bears on it of the robot's; for a final one that is complete."""

    segment: AudioSegment
    robot: RobotContext


class AudioFrontEnd:
    """From messages to segments of speech: quick, and on one thread."""

    def __init__(self, config: HearingConfig) -> None:
        self._stated = config.stated
        self._refused: SoundError | None = None
        self._microphone = Microphone(config.channel)
        silero = Silero()
        self._segmenter = Segmenter(config.voice, config.segments, silero, silero.reset)
        self._robot = RobotVoice(config.robot)
        self._held: deque[AudioSegment] = deque()
        self._sound_until_ns: int | None = None
        self.counts: Counter[str] = self._microphone.counts
        self._robot.counts = self.counts

    @property
    def quiet_until_ns(self) -> int | None:
        """No segment that is still to be given begins before this; None before any sound."""
        if self._sound_until_ns is None:
            return None
        under_way = [segment.start_ns for segment in self._held]
        speech_ns = self._segmenter.speech_since_ns
        return min([self._sound_until_ns, *under_way, *([] if speech_ns is None else [speech_ns])])

    def take_audio(self, message: Any, arrival_ns: int) -> Iterator[SpeechSegment]:
        """The segments that an audio message completes; SoundError where it cannot be used."""
        try:
            if self._refused:
                raise self._refused
            chunk = decode(message, self._stated)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise
        yield from self.take_sound(chunk, arrival_ns)

    def take_audio_info(self, info: Any) -> Iterator[SpeechSegment]:
        """Takes an AudioInfo; SoundError, for each message too that follows, where it states an unusable format."""
        self._refused = None
        try:
            self._stated = stated_by(info, self._stated)
        except SoundError as error:
            self._refused = error
            raise
        yield from ()

    def take_sound(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[SpeechSegment]:
        """The segments that a chunk completes; SoundError where it cannot be used."""
        try:
            for block in self._microphone.feed(chunk, arrival_ns):
                yield from self._take(block)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise

    def take_robot_speech(self, edge: RobotSpeech) -> None:
        """Take the robot's start or stop, in the order in which it came among the sounds."""
        self._robot.feed(edge, self._sound_until_ns)

    def robot_about(self, start_ns: int, end_ns: int) -> RobotContext:
        """What is known so far of the robot's speech in a stretch that others recognised."""
        return self._robot.about(start_ns, end_ns)

    def flush(self) -> Iterator[SpeechSegment]:
        """Ends the stream, and with it speech under way."""
        for block in self._microphone.flush():
            yield from self._take(block)
        for segment in self._segmenter.flush():
            yield from self._pass(segment)
        yield from self._release(None)

    def _take(self, block: Block) -> Iterator[SpeechSegment]:
        for segment in self._segmenter.feed(block):
            yield from self._pass(segment)
        went_back = self._sound_until_ns is not None and block.stamp_ns < self._sound_until_ns
        self._sound_until_ns = block.stamp_ns + BLOCK_NS
        yield from self._release(None if went_back else self._sound_until_ns)

    def _pass(self, segment: AudioSegment) -> Iterator[SpeechSegment]:
        if segment.final:
            self._held.append(segment)
        else:
            yield self._with_context(segment)

    def _release(self, sound_until_ns: int | None) -> Iterator[SpeechSegment]:
        """Lets go of what the sound has passed by far enough; of all where the stream has ended."""
        while self._held and (sound_until_ns is None or sound_until_ns >= self._held[0].end_ns + self._robot.waits_ns):
            yield self._with_context(self._held.popleft())

    def _with_context(self, segment: AudioSegment) -> SpeechSegment:
        return SpeechSegment(segment=segment, robot=self._robot.about(segment.start_ns, segment.end_ns))
