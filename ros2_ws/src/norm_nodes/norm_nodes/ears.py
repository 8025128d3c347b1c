"""Hears the robot's microphone and publishes who said what, and when."""

import time
from collections import Counter
from threading import Thread
from typing import Any

from pydantic import Field
from rclpy.clock import Clock, ClockType

from norm_core.config import Config, ConfigError
from norm_core.messages import MessageError
from norm_core.queue import BoundedQueue
from norm_core.speech import RobotSpeech, Utterance
from norm_core.status import Health
from norm_monitor.senses.hearing import HearingConfig, Listener, Scribe
from norm_monitor.senses.pcm import PcmFormat, SoundError
from norm_monitor.senses.segments import Segment, SegmentConfig
from norm_monitor.senses.whisper import Whisper, WhisperConfig
from norm_nodes.convert import TypeMissingError, from_ros, message_class, to_ros
from norm_nodes.endpoint import EVENTS, SENSOR
from norm_nodes.norm_node import NormNode

SOUND_QUEUE, SPEECH_QUEUE = 500, 8
WATCH_S = 1.0
WAIT_S = 0.2


class EarsConfig(Config):
    audio_topic: str = Field("/audio", min_length=1, description="topic of the microphone")
    audio_type: str = Field(
        "", description="its message type, as naoqi_bridge_msgs/msg/AudioBuffer; empty to hear nothing"
    )
    robot_speech_topic: str = Field(
        "robot_speech", min_length=1, description="when the robot starts and stops to speak"
    )
    channel: int = Field(0, ge=-1, le=7, description="channel to hear, the first is 0; -1 for the mean of all")
    sample_format: str = Field("s16le", description="sample format of messages that do not state theirs")
    rate_hz: int = Field(16_000, ge=8_000, le=96_000, description="rate of messages that do not state theirs")
    channels: int = Field(1, ge=1, le=8, description="number of channels of messages that do not state theirs")
    model: str = Field("", description="folder of a CTranslate2 Whisper model; empty for the packaged tiny.en")
    language: str = Field("en", min_length=2, max_length=3, description="language code, as en or zh")
    partial_every_s: float = Field(2.0, ge=0, le=30, description="how often speech under way is given; 0 for never")
    stale_after_s: float = Field(3.0, gt=0, le=600, description="silence of the topic after which it counts as stopped")

    def hearing(self) -> HearingConfig:
        """The same as the speech path wants it."""
        return HearingConfig(
            channel=self.channel,
            stated=PcmFormat(sample_format=self.sample_format, rate_hz=self.rate_hz, channels=self.channels),
            segments=SegmentConfig(partial_every_s=self.partial_every_s),
            whisper=WhisperConfig(model=self.model, language=self.language),
        )


class Ears(NormNode[EarsConfig]):
    """Publishes utterances, partial and final; the audio callback only queues, two threads do the work."""

    config_model = EarsConfig

    def __init__(self) -> None:
        super().__init__("ears")
        self._threads: list[Thread] = []
        self._active = False
        self._last_sound_s = time.monotonic()
        self._ended = True

    def open(self) -> None:
        hearing = self.config.hearing()
        topic = self.resolve_topic_name(self.config.audio_topic)
        self._scribe = Scribe(hearing, Whisper(hearing.whisper), topic)
        self._listener = Listener(hearing)
        self._sounds: BoundedQueue[Any] = self.bounded_queue("sounds", SOUND_QUEUE)
        self._speech: BoundedQueue[Segment] = self.bounded_queue("speech", SPEECH_QUEUE)
        self._utterances = self.offer(Utterance, "utterances", EVENTS, "who said what; final and partial")
        self.listen(
            RobotSpeech, self.config.robot_speech_topic, self._hear_robot, EVENTS, "when the robot itself speaks"
        )
        if self.config.audio_type:
            self._listen_to_audio()
        else:
            self.trouble("audio", Health.DEGRADED, "ears: audio_type is empty: name the type of the audio topic")
        self._threads = [
            Thread(target=work, name=name, daemon=True)
            for name, work in (("ears_listen", self._listen), ("ears_write", self._write))
        ]
        for thread in self._threads:
            thread.start()
        self._watch_timer = self.create_timer(WATCH_S, self._watch, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def start(self) -> None:
        self._active = True
        self._last_sound_s = time.monotonic()

    def stop(self) -> None:
        self._active = False

    def close(self) -> None:
        self.destroy_timer(self._watch_timer)
        self._sounds.close()
        for thread in self._threads:
            thread.join()
            self._speech.close()  # once the first thread has put in the last of it
        self._threads.clear()

    def _listen_to_audio(self) -> None:
        try:
            type_ = message_class(self.config.audio_type)
        except TypeMissingError as error:
            self.trouble("audio", Health.DEGRADED, f"{self.config.audio_topic} is not heard: {error}")
            return
        except ValueError as error:
            raise ConfigError(f"ears: audio_type: {self.config.audio_type} is no package/msg/Name") from error
        self.listen(type_, self.config.audio_topic, self._hear, SENSOR, "the microphone")

    def _hear(self, message: Any) -> None:
        if not self._active:
            return
        self._last_sound_s, self._ended = time.monotonic(), False
        self._sounds.put((message, self.clock.now_ns()))

    def _hear_robot(self, message: Any) -> None:
        try:
            self._scribe.robot_speaks(from_ros(RobotSpeech, message))
        except MessageError as error:
            self.count("robot_speech_refused")
            self.trouble("robot_speech", Health.DEGRADED, str(error))

    def _listen(self) -> None:
        while not self._sounds.is_drained():
            entry = self._sounds.get(timeout_s=WAIT_S)
            if entry is None:
                continue
            message, arrival_ns = entry
            try:
                found = self._listener.flush() if message is None else self._listener.hear_message(message, arrival_ns)
                for segment in found:
                    self._hand_on(segment)
                if message is not None:
                    self.mended("sound")
            except (SoundError, RuntimeError, ValueError, TypeError) as error:
                self.count("messages_not_heard")
                self.trouble("sound", Health.DEGRADED, f"{self.config.audio_topic}: {error}")
            self._take_counts(self._listener.counts)
        for segment in self._listener.flush():
            self._hand_on(segment)

    def _hand_on(self, segment: Segment) -> None:
        if segment.final or not self._speech.status().depth:
            self._speech.put(segment)
        else:
            self.count("partials_skipped")  # a final one waits, and matters more

    def _write(self) -> None:
        while not self._speech.is_drained():
            segment = self._speech.get(timeout_s=WAIT_S)
            if segment is None:
                continue
            try:
                utterances = list(self._scribe.write(segment))
            except (RuntimeError, ValueError, OSError, MemoryError) as error:
                self.count("segments_not_transcribed")
                self.trouble("transcriber", Health.DEGRADED, f"speech was not transcribed: {error}")
                continue
            self.mended("transcriber")
            for utterance in utterances:
                self._utterances.publish(to_ros(utterance))
                self.count("utterances_final" if utterance.final else "utterances_partial")
            self._take_counts(self._scribe.counts)

    def _take_counts(self, counts: Counter[str]) -> None:
        for name, count in counts.items():
            self.count(name, count)
        counts.clear()

    def _watch(self) -> None:
        """Names a microphone that vanished, and ends the speech that it left unfinished."""
        if not self._active or not self.config.audio_type:
            return
        topic = self.config.audio_topic
        publishers = self.count_publishers(topic)
        if publishers > 1:
            self.trouble("publishers", Health.DEGRADED, f"{topic} has {publishers} publishers: stop all but one")
        else:
            self.mended("publishers")
        if time.monotonic() - self._last_sound_s <= self.config.stale_after_s:
            self.mended("microphone")
            return
        cause = "its publisher has stopped sending" if publishers else "nobody publishes it"
        self.trouble(
            "microphone", Health.STALE, f"{topic} has been silent for {self.config.stale_after_s:g} s: {cause}"
        )
        if not self._ended:
            self._ended = True
            self._sounds.put((None, 0))
