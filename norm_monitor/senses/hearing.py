"""The speech path: messages to segments of speech, and segments to utterances."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from norm_core.config import Config
from norm_core.speech import RobotSpeech, Utterance
from norm_core.time import ns_to_s
from norm_monitor.senses.audio_message import SoundChunk, decode
from norm_monitor.senses.guards import Doubt, GuardConfig, doubt
from norm_monitor.senses.microphone import Block, Microphone
from norm_monitor.senses.pcm import PcmFormat, SoundError
from norm_monitor.senses.recognised import Recogniser
from norm_monitor.senses.robot_voice import RobotVoice, RobotVoiceConfig
from norm_monitor.senses.segments import Segment, SegmentConfig, Segmenter
from norm_monitor.senses.silero import Silero
from norm_monitor.senses.speaker import attribute
from norm_monitor.senses.voice_activity import VoiceActivityConfig
from norm_monitor.senses.whisper import WhisperConfig


class HearingConfig(Config):
    channel: int = Field(default=0, ge=-1, le=7, description="channel to hear, the first is 0; -1 for the mean of all")
    stated: PcmFormat = Field(default=PcmFormat(), description="the format of messages that do not state theirs")
    voice: VoiceActivityConfig = VoiceActivityConfig()
    segments: SegmentConfig = SegmentConfig()
    guards: GuardConfig = GuardConfig()
    robot: RobotVoiceConfig = RobotVoiceConfig()
    whisper: WhisperConfig = WhisperConfig()


class Listener:
    """From audio messages to segments of speech: quick, and on one thread."""

    def __init__(self, config: HearingConfig) -> None:
        self.stated = config.stated
        self._microphone = Microphone(config.channel)
        silero = Silero()
        self._segmenter = Segmenter(config.voice, config.segments, silero, silero.reset)
        self.counts: Counter[str] = self._microphone.counts

    def hear_message(self, message: Any, arrival_ns: int) -> Iterator[Segment]:
        """The segments that an audio message completes; SoundError where it cannot be used."""
        try:
            chunk = decode(message, self.stated)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise
        yield from self.hear(chunk, arrival_ns)

    def hear(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[Segment]:
        """The segments that a chunk completes; SoundError where it cannot be used."""
        try:
            for block in self._microphone.feed(chunk, arrival_ns):
                yield from self._take(block)
        except SoundError as error:
            self.counts[error.fault] += 1
            raise

    def flush(self) -> Iterator[Segment]:
        """Ends the stream, and with it speech under way."""
        for block in self._microphone.flush():
            yield from self._take(block)
        yield from self._segmenter.flush()

    def _take(self, block: Block) -> Iterator[Segment]:
        yield from self._segmenter.feed(block)


class Scribe:
    """From segments to utterances: slow, and on one thread; the robot's speech may come from another."""

    def __init__(self, config: HearingConfig, recogniser: Recogniser, source_topic: str) -> None:
        self._config, self._recogniser, self._source_topic = config, recogniser, source_topic
        self.robot = RobotVoice(config.robot)
        self.counts: Counter[str] = Counter()

    def robot_speaks(self, edge: RobotSpeech) -> None:
        """Takes the robot's start or stop."""
        self.robot.feed(edge)

    def write(self, segment: Segment) -> list[Utterance]:
        """The utterances of a segment; none where what was recognised is not to be believed."""
        heard = self._recogniser.recognise(segment)
        why = doubt(heard, ns_to_s(segment.end_ns - segment.start_ns), self._config.guards)
        if why is not Doubt.NONE:
            self.counts[f"text_not_believed_{why}"] += 1
            return []
        return attribute(segment, heard, self.robot, self._config.robot.same_words, self._source_topic)
