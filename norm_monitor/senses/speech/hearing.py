"""The speech path: messages to passages of speech, and passages to utterances.

Sound and word of the robot's speech go in as they come, in one order; a passage is held back until the sound has
gone so far past it that all that bears on it must have come. So utterances depend on stamps alone.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.config import Config
from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode, stated_by
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block, Microphone
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.senses.robot_voice.echo_level import EchoLevel
from norm_monitor.senses.robot_voice.robot_voice import RobotContext, RobotVoice, RobotVoiceConfig
from norm_monitor.senses.robot_voice.speaker_attribution import Heard, attribute
from norm_monitor.senses.speech.recognition import Recognised, Recogniser
from norm_monitor.senses.speech.segmenter import Segment, SegmentConfig, Segmenter, Stage
from norm_monitor.senses.speech.silero import Silero
from norm_monitor.senses.speech.text_guards import Doubt, GuardConfig, doubt
from norm_monitor.senses.speech.voice_activity import VoiceActivityConfig
from norm_monitor.senses.speech.whisper import WhisperConfig


class HearingConfig(Config):
    channel: int = Field(default=0, ge=-1, le=7, description="channel to hear, the first is 0; -1 for the mean of all")
    stated: PcmFormat = Field(default=PcmFormat(), description="the format of messages that do not state theirs")
    voice: VoiceActivityConfig = VoiceActivityConfig()
    segments: SegmentConfig = SegmentConfig()
    guards: GuardConfig = GuardConfig()
    robot: RobotVoiceConfig = RobotVoiceConfig()
    whisper: WhisperConfig = WhisperConfig()


@record
class Passage:
    """A segment of speech, and what bears on it of the robot's; for a final one that is complete."""

    segment: Segment
    robot: RobotContext


class Listener:
    """From messages to passages of speech: quick, and on one thread."""

    def __init__(self, config: HearingConfig) -> None:
        self.stated = config.stated
        self._refused: SoundError | None = None
        self._microphone = Microphone(config.channel)
        silero = Silero()
        self._segmenter = Segmenter(config.voice, config.segments, silero, silero.reset)
        self._robot = RobotVoice(config.robot)
        self._held: deque[Segment] = deque()
        self._sound_until_ns: int | None = None
        self.counts: Counter[str] = self._microphone.counts
        self._robot.counts = self.counts

    @property
    def quiet_until_ns(self) -> int | None:
        """No passage that is still to be given begins before this; None before any sound."""
        if self._sound_until_ns is None:
            return None
        under_way = [segment.start_ns for segment in self._held]
        speech_ns = self._segmenter.speech_since_ns
        return min([self._sound_until_ns, *under_way, *([] if speech_ns is None else [speech_ns])])

    def hear_message(self, message: Any, arrival_ns: int) -> Iterator[Passage]:
        """The passages that an audio message completes; SoundError where it cannot be used."""
        try:
            if self._refused:
                raise self._refused
            chunk = decode(message, self.stated)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise
        yield from self.hear(chunk, arrival_ns)

    def hear_info(self, info: Any) -> Iterator[Passage]:
        """Takes an AudioInfo; SoundError, for each message too that follows, where it states an unusable format."""
        self._refused = None
        try:
            self.stated = stated_by(info, self.stated)
        except SoundError as error:
            self._refused = error
            raise
        yield from ()

    def hear(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[Passage]:
        """The passages that a chunk completes; SoundError where it cannot be used."""
        try:
            for block in self._microphone.feed(chunk, arrival_ns):
                yield from self._take(block)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise

    def hear_robot(self, edge: RobotSpeech) -> Iterator[Passage]:
        """Takes the robot's start or stop, in the order in which it came among the sounds."""
        self._robot.feed(edge, self._sound_until_ns)
        yield from ()

    def robot_about(self, start_ns: int, end_ns: int) -> RobotContext:
        """What is known so far of the robot's speech in a stretch that others recognised."""
        return self._robot.about(start_ns, end_ns)

    def flush(self) -> Iterator[Passage]:
        """Ends the stream, and with it speech under way."""
        for block in self._microphone.flush():
            yield from self._take(block)
        for segment in self._segmenter.flush():
            yield from self._pass(segment)
        yield from self._release(None)

    def _take(self, block: Block) -> Iterator[Passage]:
        for segment in self._segmenter.feed(block):
            yield from self._pass(segment)
        went_back = self._sound_until_ns is not None and block.stamp_ns < self._sound_until_ns
        self._sound_until_ns = block.stamp_ns + BLOCK_NS
        yield from self._release(None if went_back else self._sound_until_ns)

    def _pass(self, segment: Segment) -> Iterator[Passage]:
        if segment.final:
            self._held.append(segment)
        else:
            yield self._passage(segment)

    def _release(self, sound_until_ns: int | None) -> Iterator[Passage]:
        """Lets go of what the sound has passed by far enough; of all where the stream has ended."""
        while self._held and (sound_until_ns is None or sound_until_ns >= self._held[0].end_ns + self._robot.waits_ns):
            yield self._passage(self._held.popleft())

    def _passage(self, segment: Segment) -> Passage:
        return Passage(segment=segment, robot=self._robot.about(segment.start_ns, segment.end_ns))


class Scribe:
    """From passages to utterances: slow, and on one thread."""

    def __init__(self, config: HearingConfig, recogniser: Recogniser, source_topic: str) -> None:
        self._config, self._recogniser, self._source_topic = config, recogniser, source_topic
        self._echo = EchoLevel()
        self._ahead: tuple[tuple[int, int, int], Recognised] | None = None
        self.counts: Counter[str] = Counter()

    def write(self, passage: Passage) -> list[Utterance]:
        """The utterances of a passage; none of one that only may have ended, nor where its text is not believed."""
        segment = passage.segment
        recognised = self._recognise(segment)
        if segment.stage is Stage.LIKELY:
            return []
        why = doubt(recognised, ns_to_s(segment.end_ns - segment.start_ns), self._config.guards)
        if why is not Doubt.NONE:
            self.counts[f"text_not_believed_{why}"] += 1
            return []
        heard = Heard(segment=segment, recognised=recognised, robot=passage.robot, source_topic=self._source_topic)
        return attribute(heard, self._echo, self._config.robot.louder_db)

    def _recognise(self, segment: Segment) -> Recognised:
        """A final segment was mostly recognised already, when its speech had likely ended."""
        key = (segment.sound_ns, segment.end_ns, len(segment.samples))
        ahead, self._ahead = self._ahead, None
        if segment.final and ahead and ahead[0] == key:
            self.counts["recognised_ahead"] += 1
            return ahead[1]
        recognised = self._recogniser.recognise(segment)
        if segment.stage is Stage.LIKELY:
            self._ahead = (key, recognised)
        return recognised
