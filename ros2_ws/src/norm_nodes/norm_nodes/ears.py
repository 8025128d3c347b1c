"""Hears the robot's microphone, or its own recogniser, and publishes who said what, and when."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Lock, Thread
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Empty

from norm_core.records.messages import message_type
from norm_core.records.speech import RobotSpeech, Timing, Utterance, silence
from norm_core.records.status import Health
from norm_core.runtime.bounded_queue import BoundedQueue
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.robot_voice.robot_speech_adapter import RobotSpeechAdapter
from norm_monitor.senses.robot_voice.speaker_attribution import attribute_text
from norm_monitor.senses.speech.external_recognizer import LiveSpeechAdapter
from norm_monitor.senses.speech.hearing import Listener, Passage, Scribe
from norm_monitor.senses.speech.whisper import Whisper
from norm_nodes.convert import TypeMissingError, from_ros, message_class, to_ros
from norm_nodes.ears_config import EarsConfig
from norm_nodes.endpoint import EVENTS, SENSOR
from norm_nodes.norm_node import NormNode
from norm_nodes.settling import ENDED_TOPIC

SOUND_QUEUE, SPEECH_QUEUE = 500, 8
SILENCE_EVERY_NS = NS_PER_S // 10
WATCH_S = 1.0
WAIT_S = 0.2

# A format is often told once, before anyone listens.
_TOLD_ONCE = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# What a callback leaves to the listening thread: about what it is, and how it is taken.
Event = tuple[str, Callable[[], Iterator[Passage | Utterance]]]


class Ears(NormNode[EarsConfig]):
    """Publishes utterances, partial and final; the callbacks only queue, two threads do the work."""

    config_model = EarsConfig

    def __init__(self) -> None:
        super().__init__("ears")
        self._threads: list[Thread] = []
        self._active = False
        self._last_sound_s = time.monotonic()
        self._ended = True

    def open(self) -> None:
        hearing = self.config.hearing()
        self._listener = Listener(hearing)
        self._events: BoundedQueue[Event] = self.bounded_queue("sounds", SOUND_QUEUE)
        self._speech: BoundedQueue[Passage | Utterance] = self.bounded_queue("speech", SPEECH_QUEUE)
        self._told_quiet_ns: int | None = None
        self._marking = Lock()
        self._mark_behind: Utterance | None = None  # the silence after the words that wait to be written
        self._utterances = self.offer(Utterance, "utterances", EVENTS, "who said what; final and partial")
        workers = [("ears_listen", self._listen)]
        if self.config.words_from == "whisper":
            topic = self.resolve_topic_name(self.config.audio_topic)
            self._scribe = Scribe(hearing, Whisper(hearing.whisper), topic)
            self._open_audio()
            workers.append(("ears_write", self._write))
        else:
            self._open_words()
        self._open_robot_speech()
        self.listen(Empty, ENDED_TOPIC, self._end, EVENTS, "a recording that is replayed has ended")
        self._threads = [Thread(target=work, name=name, daemon=True) for name, work in workers]
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
        self._events.close()
        for thread in self._threads:
            thread.join()
            self._speech.close()  # once the first thread has put in the last of it
        self._threads.clear()

    def _open_audio(self) -> None:
        config = self.config
        if not config.audio_type:
            self.trouble("audio", Health.DEGRADED, "ears: audio_type is empty: name the type of the audio topic")
            return
        self._listen_to("audio_type", config.audio_topic, self._hear, "the microphone")
        if config.audio_info_topic:
            # Either durability alone would miss half of the publishers.
            for qos in (SENSOR, _TOLD_ONCE):
                self._listen_to(
                    "audio_info_type", config.audio_info_topic, self._hear_info, "the format of bare bytes", qos
                )

    def _open_words(self) -> None:
        config = self.config
        self._words = LiveSpeechAdapter(self.resolve_topic_name(config.words_topic))
        self._listen_to("words_type", config.words_topic, self._hear_words, "what the robot's own recogniser heard")
        if config.is_speaking_topic:
            type_ = message_class("std_msgs/msg/Bool")
            self.listen(type_, config.is_speaking_topic, self._hear_edge, SENSOR, "when that voice speaks")

    def _open_robot_speech(self) -> None:
        self._robot_adapter = RobotSpeechAdapter(self.config.robot_speaker_ids)
        canonical = self.config.robot_speech_type == message_type(RobotSpeech)
        take = self._hear_robot if canonical else self._hear_robot_text
        if not canonical:
            self._robot_speech = self.offer(RobotSpeech, "robot_speech", EVENTS, "what a topic of another type tells")
        qos = EVENTS if canonical else SENSOR
        self._listen_to("robot_speech_type", self.config.robot_speech_topic, take, "when the robot itself speaks", qos)

    def _listen_to(
        self, parameter: str, topic: str, take: Callable[[Any], None], what: str, qos: QoSProfile = SENSOR
    ) -> None:
        """Subscribes where the type is installed, and names what is missing where it is not."""
        type_name = getattr(self.config, parameter)
        try:
            type_ = message_class(type_name)
        except TypeMissingError as error:
            self.trouble(parameter, Health.DEGRADED, f"{topic} is not heard: {error}")
            return
        except ValueError as error:
            raise ConfigError(f"ears: {parameter}: {type_name} is no package/msg/Name") from error
        self.listen(type_, topic, take, qos, what)

    def _hear(self, message: Any) -> None:
        if not self._active:
            return
        self._last_sound_s, self._ended = time.monotonic(), False
        arrival_ns = self.clock.now_ns()
        self._events.put((self.config.audio_topic, lambda: self._listener.hear_message(message, arrival_ns)))

    def _hear_info(self, message: Any) -> None:
        self._events.put((self.config.audio_info_topic, lambda: self._listener.hear_info(message)))

    def _hear_robot(self, message: Any) -> None:
        self._events.put(
            (self.config.robot_speech_topic, lambda: self._listener.hear_robot(from_ros(RobotSpeech, message)))
        )

    def _hear_robot_text(self, message: Any) -> None:
        arrival_ns = self.clock.now_ns()

        def take() -> Iterator[Passage]:
            for edge in self._robot_adapter.feed(message, arrival_ns):
                self._robot_speech.publish(to_ros(edge))
                yield from self._listener.hear_robot(edge)

        self._events.put((self.config.robot_speech_topic, take))

    def _hear_words(self, message: Any) -> None:
        if not self._active:
            return
        self._last_sound_s = time.monotonic()
        arrival_ns = self.clock.now_ns()

        def take() -> Iterator[Utterance]:
            utterance = self._words.live_speech(message, arrival_ns)
            if utterance and utterance.timing is not Timing.ABSENT:
                robot = self._listener.robot_about(utterance.start_ns, utterance.end_ns)
                utterance = attribute_text(utterance, robot)
            if utterance:
                yield utterance

        self._events.put((self.config.words_topic, take))

    def _end(self, _: Any) -> None:
        self._events.put((ENDED_TOPIC, self._listener.flush))

    def _hear_edge(self, message: Any) -> None:
        arrival_ns = self.clock.now_ns()

        def take() -> Iterator[Utterance]:
            self._words.is_speaking(bool(message.data), arrival_ns)
            yield from ()

        self._events.put((self.config.is_speaking_topic, take))

    def _listen(self) -> None:
        while not self._events.is_drained():
            event = self._events.get(timeout_s=WAIT_S)
            if event is None:
                continue
            topic, take = event
            try:
                for found in take():
                    self._hand_on(found)
                self.mended(topic)
            except (RuntimeError, ValueError, TypeError, AttributeError) as error:
                self.count("messages_not_heard")
                self.trouble(topic, Health.DEGRADED, f"{topic}: {error}")
            self._take_counts(self._listener.counts)
            self._tell_silence()
        for passage in self._listener.flush():
            self._hand_on(passage)

    def _hand_on(self, found: Passage | Utterance) -> None:
        if isinstance(found, Utterance):
            self._publish(found)
        elif found.segment.final or not self._speech.status().depth:
            self._speech.put(found)
        else:
            self.count("partials_skipped")  # a final one waits, and matters more

    def _tell_silence(self) -> None:
        """Ten times a second of sound says how far it is known that nobody began to speak, behind all that was said."""
        quiet_ns, told_ns = self._listener.quiet_until_ns, self._told_quiet_ns
        if quiet_ns is None:
            return
        if told_ns is None or quiet_ns < told_ns or quiet_ns - told_ns >= SILENCE_EVERY_NS:
            mark = silence(quiet_ns, self.resolve_topic_name(self.config.audio_topic))
            self._told_quiet_ns = quiet_ns
            with self._marking:
                if self._speech.is_idle():
                    self._utterances.publish(to_ros(mark))
                elif self._speech.status().depth:
                    self._mark_behind = mark
                else:
                    self._speech.put(mark)

    def _write(self) -> None:
        while not self._speech.is_drained():
            passage = self._speech.get(timeout_s=WAIT_S)
            if passage is None:
                continue
            if isinstance(passage, Utterance):
                self._utterances.publish(to_ros(passage))
            else:
                self._transcribe(passage)
            with self._marking:
                mark = self._mark_behind
                if mark and not self._speech.status().depth:
                    self._mark_behind = None
                    self._utterances.publish(to_ros(mark))

    def _transcribe(self, passage: Passage) -> None:
        try:
            utterances = self._scribe.write(passage)
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            self.count("segments_not_transcribed")
            self.trouble("transcriber", Health.DEGRADED, f"speech was not transcribed: {error}")
            return
        self.mended("transcriber")
        for utterance in utterances:
            self._publish(utterance)
        self._take_counts(self._scribe.counts)

    def _publish(self, utterance: Utterance) -> None:
        self._utterances.publish(to_ros(utterance))
        self.count("utterances_final" if utterance.final else "utterances_partial")

    def _take_counts(self, counts: Counter[str]) -> None:
        for name, count in counts.items():
            self.count(name, count)
        counts.clear()

    def _watch(self) -> None:
        """Names a microphone that vanished, and ends the speech that it left unfinished."""
        if not self._active or not self.config.audio_type or self.config.words_from != "whisper":
            return
        topic = self.config.audio_topic
        publishers = self.count_publishers(topic)
        if publishers > 1:
            self.trouble("publishers", Health.DEGRADED, f"{topic} has {publishers} publishers: stop all but one")
        else:
            self.mended("publishers")
        longest_s = self.config.stale_after_s
        if not longest_s or time.monotonic() - self._last_sound_s <= longest_s:
            self.mended("microphone")
            return
        cause = "its publisher has stopped sending" if publishers else "nobody publishes it"
        self.trouble("microphone", Health.STALE, f"{topic} has been silent for {longest_s:g} s: {cause}")
        if not self._ended:
            self._ended = True
            self._events.put((topic, self._listener.flush))
