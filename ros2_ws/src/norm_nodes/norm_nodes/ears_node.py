"""The ears node: subscribe to sound or words, and state what is missing; `EarsWorker` reads and publishes."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from std_msgs.msg import Empty

from norm_core.engines.providers import make_fault_reporter
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.topics import RECORDING_ENDED_TOPIC, ROBOT_SPEECH_TOPIC, UTTERANCES_TOPIC
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.senses.speech.voices import VOICE_TEXTS
from norm_monitor.senses.speech.whisper import Whisper
from norm_nodes.base.convert import from_ros, message_class, record_class
from norm_nodes.base.endpoint import EVENTS, SENSOR, SPEECH
from norm_nodes.base.norm_node import NormNode
from norm_nodes.ears_config import EarsConfig
from norm_nodes.ears_worker import EarsWorker
from norm_nodes.hri_voice import HriVoice
from norm_nodes.robot_topics import RobotTopics
from norm_nodes.tracked_ids import BOOL_TYPE, EITHER_DURABILITY, IDS_TYPE, VOICES_TRACKED
from norm_nodes.voice_topics import VoiceTopics

# How often the inputs are checked.
WATCH_S = 1.0


class EarsNode(NormNode[EarsConfig]):
    """Publish who said what, in partial and final utterances."""

    config_model = EarsConfig

    def __init__(self) -> None:
        super().__init__("ears")
        self._last_sound_s = time.monotonic()
        self._has_ended = True  # whether the input has ended, and no speech is open

    def open(self) -> None:
        """Load Whisper if it gives the words, subscribe to sound or words, and start the threads."""
        self.notes = ()
        config = self.config
        hearing = config.make_hearing_config()
        on_fault = make_fault_reporter(self.health_log, "speech recognition", "whisper_device of ears")
        whisper = Whisper(hearing.whisper, on_fault) if config.words_from == "whisper" else None
        self._audio_topic = self.resolve_topic_name(config.audio_topic)
        self._worker = EarsWorker(self)
        self._ears = Ears(
            hearing,
            self.health_log,
            whisper,
            self._audio_topic,
            self._worker.segments,
            config.robot_speaker_ids,
            robot_offset_ns=self._read_robot_offset_ns(),
        )
        utterances = self.advertise(Utterance, UTTERANCES_TOPIC, SPEECH, "who said what; final and partial")
        robot_speech = self._open_robot_speech()
        self._voices: VoiceTopics | None = None
        if config.publish_hri:
            self._worker.hri_voice = HriVoice(self, config.humans)
        if whisper:
            self._open_audio()
        elif config.words_from == "topic":
            self._open_words()
        else:
            self._open_voices()
        self.subscribe(Empty, RECORDING_ENDED_TOPIC, self._end_recording, EVENTS, "the end of a replayed recording")
        self._worker.start(self._ears, utterances, robot_speech, transcribes=whisper is not None)
        self.repeat(WATCH_S, self._watch)

    def start(self) -> None:
        """Accept sound; the microphone counts as silent from now on."""
        self._last_sound_s = time.monotonic()

    def stop(self) -> None:
        """Ignore further sound."""
        self._ears.awaits_words = False

    def close(self) -> None:
        """Transcribe what is queued, and end the threads."""
        self._worker.close()

    def _open_audio(self) -> None:
        config = self.config
        if not config.audio_type:
            self._state_missing_type()
            return
        self._listen_to("audio_type", config.audio_topic, self.hear, "the microphone")
        if topic := config.audio_info_topic:
            read_format = partial(self._worker.add_message, topic, lambda info, _: self._ears.set_audio_format(info))
            for qos in EITHER_DURABILITY:
                self._listen_to("audio_info_type", topic, read_format, "the format of bare bytes", qos)

    def _state_missing_type(self) -> None:
        """State which types are published, as the parameter names none."""
        topic = self._audio_topic
        types = " or ".join(self.find_published_types(topic))
        remedy = types or f"the type of the microphone's topic, which audio_topic names ({topic})"
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
        self._has_ended = False
        self._ears.awaits_words = False  # until the recognizer is found

    def _open_robot_speech(self) -> Publisher | None:
        """Subscribe to the robot's speech; return the publisher of its records, unless another node publishes them."""
        config, own = self.config, self.resolve_topic_name(ROBOT_SPEECH_TOPIC)
        self._robot_topics: RobotTopics | None = None
        if self.resolve_topic_name(config.robot_speech_topic) == own:
            if config.robot_speaking_topic:
                raise ConfigError(
                    "ears: robot_speaking_topic: RobotSpeech states its own times; leave it empty, or name it as "
                    "robot_speech_topic"
                )
            self.subscribe(RobotSpeech, own, partial(self._hear_robot, own), EVENTS, "when the robot itself speaks")
            return None
        publisher = self.advertise(RobotSpeech, ROBOT_SPEECH_TOPIC, SPEECH, "the robot's speech, from its own topics")
        self.watch_rivals(
            publisher,
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
        return publisher

    def _read_robot_offset_ns(self) -> int:
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
        """Subscribe if the type is installed; otherwise state the missing package in the status."""
        if type_ := self.find_class(getattr(self.config, parameter), topic, parameter):
            self.subscribe(type_, topic, callback, qos, description)

    def hear(self, message: Any) -> None:
        """Queue an audio message, as the subscription does."""
        if self.is_active:
            self._last_sound_s = time.monotonic()
            self._has_ended = False
            self._worker.add_message(self.config.audio_topic, self._ears.take_audio, message)

    def _hear_robot(self, topic: str, message: Any) -> None:
        self._worker.add_message(topic, self._take_robot_speech, message, topic)

    def _take_robot_speech(self, message: Any, arrival_ns: int, topic: str) -> Iterable[HeardRecord]:
        is_record = isinstance(message, record_class(RobotSpeech))
        speech = from_ros(RobotSpeech, message, self.health_log.note_cut_texts) if is_record else message
        return self._ears.take_robot_speech(speech, arrival_ns, topic)

    def _lose_robot_topic(self, topic: str) -> None:
        self._worker.add_message(topic, self._ears.lose_robot_topic, topic)

    def _hear_words(self, message: Any) -> None:
        if self.is_active:
            self._has_ended = False
            self._worker.add_message(self.config.words_topic, self._ears.take_words, message)

    def _hear_edge(self, message: Any) -> None:
        self._has_ended = False
        topic = self.config.is_speaking_topic
        self._worker.add_message(topic, self._ears.take_is_speaking, bool(message.data))

    def _hear_voice(self, topic: str, message: Any) -> None:
        """Queue a message about voices; `topic` lies in the namespace of humans."""
        is_speech = topic.startswith("voices/") and topic != VOICES_TRACKED
        if is_speech and not self.is_active:
            return
        if is_speech:
            self._has_ended = False
        self._worker.add_message(f"{self.config.humans}/{topic}", self._ears.take_voice, message, topic)

    def _end_recording(self, _: Any) -> None:
        self._has_ended = True
        self._ears.awaits_words = False
        self._worker.end_input(RECORDING_ENDED_TOPIC)

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
        """State that a recognizer is missing; without one, the lack of text is not silence."""
        topic, reads_topic = self._words_topic, self.config.words_from == "topic"
        is_there = self.count_publishers(topic) > 0
        self._ears.awaits_words = is_there and self.is_active and not self._has_ended
        if is_there:
            self._last_sound_s = time.monotonic()
        problem = ""
        if self.is_active and (
            mismatch := self.describe_wrong_type(topic, self.config.words_type if reads_topic else IDS_TYPE)
        ):
            problem = f"{mismatch}, so no words of people are heard; correct words_from of ears, or its topic and type"
        elif self.is_active and self._is_silent(time.monotonic()):
            parameter = "words_topic" if reads_topic else "humans"
            problem = (
                "nobody publishes it, so no words of people are heard; start the recognizer, "
                f"or correct {parameter} of ears"
            )
        self.health_log.state_issue("words", f"{topic}: {problem}" if problem else "", Health.STALE)

    def watch_microphone(self, now_s: float | None = None) -> None:
        """State that a microphone vanished, and end the speech that it left unfinished; `now_s` is monotonic."""
        if not self.is_active:
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
            if not self._has_ended:
                self._has_ended = True
                self._worker.end_input(topic)
        self.health_log.state_issue("microphone", f"{topic}: {problem}" if problem else "", Health.STALE)

    def _is_silent(self, now_s: float) -> bool:
        return 0 < self.config.stale_after_s < now_s - self._last_sound_s
