"""The ears node: subscribe, pass messages on in order of arrival, publish utterances."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from threading import Thread
from typing import Any, NamedTuple

from rclpy.qos import QoSProfile
from std_msgs.msg import Empty

from norm_core.engines.providers import make_fault_reporter
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.topics import RECORDING_ENDED_TOPIC, ROBOT_SPEECH_TOPIC, UTTERANCES_TOPIC
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_MS
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.senses.speech.audio_front_end import SpeechSegment
from norm_monitor.senses.speech.voices import VOICE_TEXTS
from norm_monitor.senses.speech.whisper import Whisper
from norm_nodes.base.convert import from_ros, message_class, record_class, to_ros
from norm_nodes.base.endpoint import EVENTS, SENSOR, SPEECH
from norm_nodes.base.norm_node import NormNode
from norm_nodes.ears_config import EarsConfig
from norm_nodes.robot_topics import RobotTopics
from norm_nodes.tracked_ids import BOOL_TYPE, EITHER_DURABILITY, IDS_TYPE
from norm_nodes.voice_topics import VOICES_TRACKED, VoiceTopics

SOUND_QUEUE, SPEECH_QUEUE = 500, 8
WATCH_S = 1.0
WAIT_S = 0.2


class EarsTask(NamedTuple):
    """A message that the segmenting thread has yet to read: its topic, the method that reads it, and the arguments."""

    topic: str
    read: Callable[..., Iterable[HeardRecord] | None]
    arguments: tuple[Any, ...] = ()
    arrival_ns: int | None = None


class EarsNode(NormNode[EarsConfig]):
    """Publish partial and final utterances: callbacks queue, one thread segments, another transcribes."""

    config_model = EarsConfig

    def __init__(self) -> None:
        super().__init__("ears")
        self._threads: list[Thread] = []
        self._active = False
        self._last_sound_s = time.monotonic()
        self._ended = True  # whether the input has ended, and no speech is open

    def open(self) -> None:
        """Load Whisper if it gives the words, subscribe to sound or words, and start the threads."""
        self.notes = ()
        hearing = self.config.make_hearing_config()
        on_fault = make_fault_reporter(self.health_log, "speech recognition", "whisper_device of ears")
        whisper = Whisper(hearing.whisper, on_fault) if self.config.words_from == "whisper" else None
        self._tasks: BoundedQueue[EarsTask] = self.health_log.queue("sounds", SOUND_QUEUE)
        self._speech: BoundedQueue[SpeechSegment] = self.health_log.queue("speech", SPEECH_QUEUE)
        self._audio_topic = self.resolve_topic_name(self.config.audio_topic)
        ids = self.config.robot_speaker_ids
        offset_ns = self._robot_offset_ns()
        self._ears = Ears(
            hearing, self.health_log, whisper, self._audio_topic, self._speech, ids, robot_offset_ns=offset_ns
        )
        self._utterances = self.advertise(Utterance, UTTERANCES_TOPIC, SPEECH, "who said what; final and partial")
        self._voices: VoiceTopics | None = None
        workers = [("ears_segment", self._segment)]
        if whisper:
            self._open_audio()
            workers.append(("ears_transcribe", self._transcribe))
        elif self.config.words_from == "topic":
            self._open_words()
        else:
            self._open_voices()
        self._open_robot_speech()
        self.subscribe(Empty, RECORDING_ENDED_TOPIC, self._end, EVENTS, "a recording that is replayed has ended")
        self._threads = [self.start_worker(name, work) for name, work in workers]
        self.repeat(WATCH_S, self._watch)

    def start(self) -> None:
        """Accept sound; the microphone counts as silent from now on."""
        self._active = True
        self._last_sound_s = time.monotonic()

    def stop(self) -> None:
        """Ignore further sound."""
        self._active = self._ears.awaits_words = False

    def close(self) -> None:
        """Transcribe the segments in the queues, then end the threads."""
        self._tasks.close()
        for thread in self._threads:
            thread.join()
            self._speech.close()  # the segmenting thread has now put in its last segment
        self._threads.clear()

    def _open_audio(self) -> None:
        config = self.config
        if not config.audio_type:
            self._state_missing_type()
            return
        self._listen_to("audio_type", config.audio_topic, self.hear, "the microphone")
        if topic := config.audio_info_topic:
            read_format = partial(self._queue, topic, lambda info, _: self._ears.set_audio_format(info))
            for qos in EITHER_DURABILITY:
                self._listen_to("audio_info_type", topic, read_format, "the format of bare bytes", qos)

    def _state_missing_type(self) -> None:
        """Name the types that are published where the parameter names none."""
        topic = self._audio_topic
        remedy = " or ".join(self.find_published_types(topic))
        remedy = remedy or f"the type of the microphone's topic, which audio_topic names ({topic})"
        why = f"ears: the parameter audio_type is empty; set it to {remedy}"
        self.health_log.raise_issue("audio", Health.DEGRADED, why)

    def _open_words(self) -> None:
        config = self.config
        self._words_topic = self.resolve_topic_name(config.words_topic)
        self._expect_words(self._words_topic)
        self._listen_to("words_type", config.words_topic, self._hear_words, "what the robot's own recognizer heard")
        if config.is_speaking_topic:
            type_ = message_class(BOOL_TYPE)
            self.subscribe(type_, config.is_speaking_topic, self._hear_edge, SENSOR, "when that voice speaks")

    def _open_voices(self) -> None:
        humans = self.config.humans
        self._expect_words(f"{humans}/{VOICE_TEXTS}")
        self._voices = VoiceTopics(self, humans, self.config.words_type, self._hear_voice)
        self._words_topic = self._voices.list_topic

    def _expect_words(self, topic: str) -> None:
        self._ears.expect_words(topic, self.config.words_lateness_ms * NS_PER_MS)
        self._ears.awaits_words = self._ended = False  # until the recognizer is found

    def _open_robot_speech(self) -> None:
        config, own = self.config, self.resolve_topic_name(ROBOT_SPEECH_TOPIC)
        self._robot_topics = self._robot_speech = None
        if self.resolve_topic_name(config.robot_speech_topic) == own:
            if config.robot_speaking_topic:
                raise ConfigError(
                    "ears: robot_speaking_topic: RobotSpeech states its own times; leave it empty, or name it as "
                    "robot_speech_topic"
                )
            self.subscribe(RobotSpeech, own, partial(self._hear_robot, own), EVENTS, "when the robot itself speaks")
            return
        self._robot_speech = self.advertise(RobotSpeech, ROBOT_SPEECH_TOPIC, SPEECH, "what the robot's own topics tell")
        self.watch_rivals(
            self._robot_speech,
            f"{own}: has a publisher beside ears, so the robot's turns may count twice; "
            "stop the others, or set robot_speech_topic of ears to robot_speech",
        )
        names = {
            "robot_speech_topic": config.robot_speech_topic,
            "robot_speaking_topic": config.robot_speaking_topic,
        }
        self._robot_topics = RobotTopics(
            self, names, config.robot_speech_type, self._hear_robot, self._lose_robot_topic
        )
        self._robot_topics.find()

    def _robot_offset_ns(self) -> int:
        own = self.resolve_topic_name(ROBOT_SPEECH_TOPIC)
        names = filter(None, (self.config.robot_speech_topic, self.config.robot_speaking_topic))
        if self.config.robot_offset_ms and own in map(self.resolve_topic_name, names):
            raise ConfigError(
                f"ears: robot_offset_ms: other nodes read {own} themselves, so its stamps cannot be moved; let the "
                "robot publish it by another name, and set robot_speech_topic to that"
            )
        return self.config.robot_offset_ms * NS_PER_MS

    def _listen_to(
        self, parameter: str, topic: str, callback: Callable[[Any], None], description: str, qos: QoSProfile = SENSOR
    ) -> None:
        """Subscribe where the type is installed; otherwise state in the status what is missing."""
        if type_ := self.find_class(getattr(self.config, parameter), topic, parameter):
            self.subscribe(type_, topic, callback, qos, description)

    def _queue(
        self, topic: str, read: Callable[..., Iterable[HeardRecord] | None], message: Any, *arguments: Any
    ) -> None:
        """Let the segmenting thread read a message of a topic, with the time of its arrival."""
        arrival_ns = self.clock.now_ns()
        self._tasks.put(EarsTask(topic, read, (message, arrival_ns, *arguments), arrival_ns))

    def hear(self, message: Any) -> None:
        """Queue an audio message, as the subscription does."""
        if self._active:
            self._last_sound_s, self._ended = time.monotonic(), False
            self._queue(self.config.audio_topic, self._ears.take_audio, message)

    def _hear_robot(self, topic: str, message: Any) -> None:
        self._queue(topic, self._take_robot_speech, message, topic)

    def _take_robot_speech(self, message: Any, arrival_ns: int, topic: str) -> Iterable[HeardRecord]:
        is_record = isinstance(message, record_class(RobotSpeech))
        speech = from_ros(RobotSpeech, message, self.health_log.note_cut_texts) if is_record else message
        return self._ears.take_robot_speech(speech, arrival_ns, topic)

    def _lose_robot_topic(self, topic: str) -> None:
        self._queue(topic, self._ears.lose_robot_topic, topic)

    def _hear_words(self, message: Any) -> None:
        if self._active:
            self._ended = False
            self._queue(self.config.words_topic, self._ears.take_words, message)

    def _hear_edge(self, message: Any) -> None:
        self._ended = False
        topic = self.config.is_speaking_topic
        self._queue(topic, self._ears.take_is_speaking, bool(message.data))

    def _hear_voice(self, topic: str, message: Any) -> None:
        """Queue a message about voices; `topic` lies in the namespace of humans."""
        tells_of_speech = topic.startswith("voices/") and topic != VOICES_TRACKED
        if tells_of_speech and not self._active:
            return
        if tells_of_speech:
            self._ended = False
        self._queue(f"{self.config.humans}/{topic}", self._ears.take_voice, message, topic)

    def _end(self, _: Any) -> None:
        self._ended, self._ears.awaits_words = True, False
        self._tasks.put_order(EarsTask(RECORDING_ENDED_TOPIC, self._ears.end_input))

    def _segment(self) -> None:
        advance = self.guard("speech", lambda now_ns: self._publish(self._ears.advance(now_ns)), lambda _: None)
        while not self._tasks.is_drained():
            now_ns = self.clock.now_ns()  # before the wait: what comes meanwhile is not earlier
            task = self._tasks.get(timeout_s=WAIT_S)
            if task is None:
                advance(now_ns)
                continue
            try:
                if task.arrival_ns is not None:
                    self._publish(self._ears.advance(task.arrival_ns))
                self._publish(task.read(*task.arguments) or ())
                self.health_log.clear_issue(f"messages on {task.topic}")
            except Exception as error:  # noqa: BLE001  whatever one message brings about must not end the thread
                self.health_log.count("messages_refused")
                why = f"{task.topic}: a message was not used: {error}"
                self.health_log.raise_issue(f"messages on {task.topic}", Health.DEGRADED, why)
        self._publish(self._ears.end_input())

    def _transcribe(self) -> None:
        transcribe = self.guard("speech", lambda: self._publish(self._ears.transcribe(timeout_s=WAIT_S)), lambda: None)
        while not self._speech.is_drained():
            transcribe()

    def _publish(self, records: Iterable[HeardRecord]) -> None:
        for record in records:
            if isinstance(record, RobotSpeech):
                if self._robot_speech:  # otherwise this very topic carried it
                    self._robot_speech.publish(to_ros(record))
                continue
            self._utterances.publish(to_ros(record))
            if record.text:
                self.health_log.count("utterances_final" if record.final else "utterances_partial")

    def _watch(self) -> None:
        if self._robot_topics:
            self._robot_topics.find()
        if self._voices:
            self._voices.update()
            nobody = f"{self._words_topic}: no voice is tracked; if somebody speaks, check the recognizer's microphone"
            self.notes = () if self._voices.tracked else (nobody,)
        if self.config.words_from == "whisper":
            self.watch_microphone()
        else:
            self._watch_recognizer()

    def _watch_recognizer(self) -> None:
        """Name a recognizer that is not there; without one, no text does not mean silence."""
        topic, reads_topic = self._words_topic, self.config.words_from == "topic"
        is_there = self.count_publishers(topic) > 0
        self._ears.awaits_words = is_there and self._active and not self._ended
        if is_there:
            self._last_sound_s = time.monotonic()
        problem = ""
        if self._active and (
            mismatch := self.describe_wrong_type(topic, self.config.words_type if reads_topic else IDS_TYPE)
        ):
            problem = f"{mismatch}, so no words of people are heard; correct words_from of ears, or its topic and type"
        elif self._active and self._is_silent(time.monotonic()):
            parameter = "words_topic" if reads_topic else "humans"
            problem = (
                "nobody publishes it, so no words of people are heard; start the recognizer, "
                f"or correct {parameter} of ears"
            )
        self.health_log.state_issue("words", f"{topic}: {problem}" if problem else "", Health.STALE)

    def watch_microphone(self, now_s: float | None = None) -> None:
        """Name a microphone that vanished, and end the speech that it left unfinished; now_s is monotonic."""
        if not self._active:
            return
        if not self.config.audio_type:
            self._state_missing_type()
            return
        topic = self.config.audio_topic
        publishers = self.count_publishers(topic)
        # DDS lists a publisher that was killed for twenty seconds more; only two that send bring too much sound.
        has_rival = publishers > 1 and self.health_log.has_issue("audio rate")
        rivals = f"{topic}: {publishers} publishers send audio; stop all but one"
        self.health_log.state_issue("publishers", rivals if has_rival else "")
        problem = ""
        if mismatch := self.describe_wrong_type(topic, self.config.audio_type):
            problem = f"{mismatch}; set audio_type of ears to its type, or correct audio_topic"
        elif self._is_silent(now_s or time.monotonic()):
            if publishers:
                why = "its publisher has stopped sending; check the microphone and its driver"
            else:
                why = "nobody publishes it; start the microphone's driver, check audio_topic and ROS_DOMAIN_ID"
            problem = f"no audio for {self.config.stale_after_s:g} s, because {why}"
            if not self._ended:
                self._ended = True
                self._tasks.put_order(EarsTask(topic, self._ears.end_input))
        self.health_log.state_issue("microphone", f"{topic}: {problem}" if problem else "", Health.STALE)

    def _is_silent(self, now_s: float) -> bool:
        return 0 < self.config.stale_after_s < now_s - self._last_sound_s
