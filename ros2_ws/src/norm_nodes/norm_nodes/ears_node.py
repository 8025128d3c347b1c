"""The ears node: subscribe, pass messages on in order of arrival, publish utterances."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, Literal

from pydantic import Field
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from std_msgs.msg import Empty

from norm_core.engines.providers import PROVIDER_ORDER, Provider, fault_reporter
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.topics import RECORDING_ENDED_TOPIC, ROBOT_SPEECH_TOPIC, UTTERANCES_TOPIC
from norm_core.runtime.config import LIVE, NAMES_FILE, Config, ConfigError
from norm_core.runtime.time import NS_PER_MS
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.ears import Ears, Heard
from norm_monitor.senses.microphone.pcm import PcmFormat
from norm_monitor.senses.robot_voice.robot_voice import RobotVoiceConfig
from norm_monitor.senses.sensor_offsets import SensorOffsets, listed
from norm_monitor.senses.speech.audio_front_end import HearingConfig, SpeechSegment
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.voices import MOST_VOICES, VOICE_TEXTS
from norm_monitor.senses.speech.whisper import Device, Languages, Whisper, WhisperConfig
from norm_nodes.convert import from_ros, message_class, record_class, to_ros
from norm_nodes.endpoint import EVENTS, SENSOR, SPEECH
from norm_nodes.norm_node import NormNode
from norm_nodes.robot_topics import EITHER_DURABILITY, HUMANS_PATTERN, IDS_TYPE, STRING_TYPE, RobotTopics, TrackedIds


class EarsConfig(Config):
    """The parameters of the node ears."""

    audio_topic: str = Field("/audio", min_length=1, description="topic of the microphone")
    audio_type: str = Field(
        "", description="its message type, as naoqi_bridge_msgs/msg/AudioBuffer; empty to hear nothing"
    )
    audio_info_topic: str = Field("", description="topic that states the format of bare bytes; empty for none")
    audio_info_type: str = Field("audio_common_msgs/msg/AudioInfo", min_length=1, description="its message type")
    robot_speech_topic: str = Field(
        ROBOT_SPEECH_TOPIC,
        min_length=1,
        description="topic or action that tells what or when the robot speaks: its words, captions, TTS, a Bool, or "
        "its own audio, of which the words are transcribed",
    )
    robot_speech_type: str = Field("", description="its message type; empty for the one that its publishers announce")
    robot_speaking_topic: str = Field(
        "", description="a second such topic that times the words of the first, as a Bool; empty for estimated times"
    )
    robot_speaker_ids: tuple[str, ...] = Field(
        (), description="speaker ids in captions that are the robot's; none given: all are"
    )
    robot_lateness_ms: int = Field(
        300, ge=0, le=10_000, description="how far word of the robot's speech may lag behind the sound"
    )
    sensor_offsets: str = Field(
        "",
        description="file of `tactful calibrate sensors`, or its bare name: it moves the stamps of the robot's speech "
        "to the microphone's; empty for none",
        json_schema_extra=NAMES_FILE,
    )
    words_from: Literal["whisper", "topic", "voices"] = Field(
        "whisper",
        description="whisper, topic where a recognizer of the robot's publishes texts, or voices where it publishes "
        "those of each voice (REP-155)",
    )
    humans: str = Field(
        "/humans", pattern=HUMANS_PATTERN, description="namespace of the voices and persons for words_from: voices"
    )
    words_topic: str = Field(
        "/humans/voices/anonymous_speaker/speech", min_length=1, description="topic of the robot's own recognizer"
    )
    words_type: str = Field("hri_msgs/msg/LiveSpeech", min_length=1, description="its message type")
    is_speaking_topic: str = Field(
        "/humans/voices/anonymous_speaker/is_speaking",
        description="Bool that times the texts of words_topic; empty for none",
    )
    words_lateness_ms: int = Field(
        2000,
        ge=0,
        le=10_000,
        description="how long after the speech its text may come on words_topic; silence is known this much later",
    )
    channel: int = Field(0, ge=-1, le=7, description="channel to hear, the first is 0; -1 for the mean of all")
    sample_format: str = Field("s16le", description="sample format of messages that do not state theirs")
    rate_hz: int = Field(16_000, ge=8_000, le=96_000, description="rate of messages that do not state theirs")
    channels: int = Field(1, ge=1, le=8, description="number of channels of messages that do not state theirs")
    model: str = Field(
        "", description="a model such as whisper-base, or the folder of one for CTranslate2; empty for whisper-tiny-en"
    )
    language: Languages = Field(
        "en",
        description="language code, such as en; several, as en,zh, to detect one of them; auto to detect any",
    )
    whisper_device: Device = Field(
        "cpu", description="cpu, cuda, or auto for cuda where there is a GPU; if cuda fails, the CPU takes its place"
    )
    whisper_compute_type: str = Field(
        "", description="CTranslate2's number type, such as float16; empty for float16 on cuda, int16 or float32 on cpu"
    )
    voice_providers: tuple[Provider, ...] = Field(
        ("cpu",), description=f"ONNX Runtime's providers for voice activity, {PROVIDER_ORDER}"
    )
    partial_every_s: float = Field(2.0, ge=0, le=30, description="how often speech under way is given; 0 for never")
    stale_after_s: float = Field(
        3.0,
        ge=0,
        le=600,
        description="silence of the topic after which it counts as stopped; 0 for never",
        json_schema_extra=LIVE,
    )

    def hearing(self) -> HearingConfig:
        """The same settings as the configuration of the speech path."""
        return HearingConfig(
            channel=self.channel,
            stated=PcmFormat(sample_format=self.sample_format, rate_hz=self.rate_hz, channels=self.channels),
            segments=SegmentConfig(partial_every_s=self.partial_every_s),
            robot=RobotVoiceConfig(lateness_ms=self.robot_lateness_ms),
            voice_providers=self.voice_providers,
            whisper=WhisperConfig(
                model=self.model,
                language=self.language,
                device=self.whisper_device,
                compute_type=self.whisper_compute_type,
            ),
        )


SOUND_QUEUE, SPEECH_QUEUE = 500, 8
WATCH_S = 1.0
WAIT_S = 0.2
BOOL_TYPE, MATCH_TYPE = "std_msgs/msg/Bool", "hri_msgs/msg/IdsMatch"


@dataclass(frozen=True, slots=True)
class EarsTask:
    """What the segmenting thread has yet to do: a method that reads a message of a topic, and its arguments."""

    topic: str
    method: Callable[..., Iterator[Heard]]
    arguments: tuple[Any, ...] = ()

    def run(self) -> Iterator[Heard]:
        """Read the message. Raises whatever its reader raises."""
        return self.method(*self.arguments)


class EarsNode(NormNode[EarsConfig]):
    """Publish partial and final utterances: callbacks queue, one thread segments, another transcribes."""

    config_model = EarsConfig

    def __init__(self) -> None:
        super().__init__("ears")
        self._threads: list[Thread] = []
        self._active = False
        self._last_sound_s = time.monotonic()
        self._ended = True

    def open(self) -> None:
        """Load Whisper if it gives the words, subscribe to sound or words, and start the threads."""
        self.notes = ()
        hearing = self.config.hearing()
        on_fault = fault_reporter(self.health_log, "speech recognition", "whisper_device of ears")
        whisper = Whisper(hearing.whisper, on_fault) if self.config.words_from == "whisper" else None
        self._tasks: BoundedQueue[EarsTask] = self.bounded_queue("sounds", SOUND_QUEUE)
        self._speech: BoundedQueue[SpeechSegment] = self.bounded_queue("speech", SPEECH_QUEUE)
        self._audio_topic = self.resolve_topic_name(self.config.audio_topic)
        ids = self.config.robot_speaker_ids
        offset_ns = self._robot_offset_ns()
        self._ears = Ears(
            hearing, self.health_log, whisper, self._audio_topic, self._speech, ids, robot_offset_ns=offset_ns
        )
        self._utterances = self.advertise(Utterance, UTTERANCES_TOPIC, SPEECH, "who said what; final and partial")
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
        """Take sound; the microphone counts as silent from this moment on."""
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
        if config.audio_info_topic:
            for qos in EITHER_DURABILITY:
                self._listen_to(
                    "audio_info_type", config.audio_info_topic, self._hear_info, "the format of bare bytes", qos
                )

    def _state_missing_type(self) -> None:
        """Name the types that are published where the parameter names none."""
        topic = self.resolve_topic_name(self.config.audio_topic)
        types = sorted({publisher.topic_type for publisher in self.get_publishers_info_by_topic(topic)})
        remedy = " or ".join(types) or f"the type of the microphone's topic, which audio_topic names ({topic})"
        self.raise_issue("audio", Health.DEGRADED, f"ears: the parameter audio_type is empty; set it to {remedy}")

    def _open_words(self) -> None:
        config = self.config
        self._words_topic = self.resolve_topic_name(config.words_topic)
        self._ears.expect_words(self._words_topic, config.words_lateness_ms * NS_PER_MS)
        self._ears.awaits_words = self._ended = False  # until the recognizer is found
        self._listen_to("words_type", config.words_topic, self._hear_words, "what the robot's own recognizer heard")
        if config.is_speaking_topic:
            type_ = message_class(BOOL_TYPE)
            self.subscribe(type_, config.is_speaking_topic, self._hear_edge, SENSOR, "when that voice speaks")

    def _open_voices(self) -> None:
        config, humans = self.config, self.config.humans
        self._ears.expect_words(f"{humans}/{VOICE_TEXTS}", config.words_lateness_ms * NS_PER_MS)
        self._ears.awaits_words = self._ended = False  # until the recognizer is found
        self._words_topic, self._tracked_voices = f"{humans}/voices/tracked", ()
        self._live_speech = self.find_class(config.words_type, f"{humans}/voices/ID/speech", "words_type")
        names = ("speech", "is_speaking")
        self._voices = TrackedIds(self, f"{humans}/voices", names, self._subscribe_to_voice, MOST_VOICES)
        self._owners = TrackedIds(
            self,
            f"{humans}/persons",
            ("voice_id",),
            lambda _, prefix: self._subscribe_each(message_class(STRING_TYPE), f"{prefix}/voice_id", EITHER_DURABILITY),
            MOST_VOICES,
        )
        for type_name, topic, profiles in (
            (IDS_TYPE, self._words_topic, EITHER_DURABILITY),
            (MATCH_TYPE, f"{humans}/candidate_matches", (SENSOR,)),
        ):
            for subscription in self._subscribe_each(self.find_class(type_name, topic, ""), topic, profiles):
                self._releases.append(partial(self.destroy_subscription, subscription))
        self._releases += [self._voices.close, self._owners.close]

    def _subscribe_to_voice(self, _: str, prefix: str) -> list[Subscription]:
        texts = self._subscribe_each(self._live_speech, f"{prefix}/speech", (SENSOR,))
        return texts + self._subscribe_each(message_class(BOOL_TYPE), f"{prefix}/is_speaking", (SENSOR,))

    def _subscribe_each(self, type_: Any, topic: str, profiles: Iterable[QoSProfile]) -> list[Subscription]:
        return self.listen(
            type_, topic, partial(self._hear_voice, topic.removeprefix(f"{self.config.humans}/")), profiles
        )

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

    def _robot_offset_ns(self) -> int | None:
        config = self.config
        own = self.resolve_topic_name(ROBOT_SPEECH_TOPIC)
        topics = {
            self.resolve_topic_name(topic)
            for topic in (config.robot_speech_topic, config.robot_speaking_topic)
            if topic
        }
        if config.sensor_offsets and own in topics:
            raise ConfigError(
                f"ears: sensor_offsets: other nodes read {own} themselves, so its stamps cannot be moved; let the "
                "robot publish it by another name, and set robot_speech_topic to that"
            )
        return SensorOffsets.robot_speech_ns(config.sensor_offsets, listed(topics))

    def _listen_to(
        self, parameter: str, topic: str, take: Callable[[Any], None], description: str, qos: QoSProfile = SENSOR
    ) -> None:
        """Subscribe where the type is installed; otherwise state in the status what is missing."""
        if type_ := self.find_class(getattr(self.config, parameter), topic, parameter):
            self.subscribe(type_, topic, take, qos, description)

    def hear(self, message: Any) -> None:
        """Queue an audio message, as the subscription does."""
        if not self._active:
            return
        self._last_sound_s, self._ended = time.monotonic(), False
        arrival_ns = self.clock.now_ns()
        self._tasks.put(EarsTask(self.config.audio_topic, self._ears.take_audio, (message, arrival_ns)))

    def _hear_info(self, message: Any) -> None:
        self._tasks.put(EarsTask(self.config.audio_info_topic, self._set_audio_format, (message,)))

    def _set_audio_format(self, info: Any) -> Iterator[Heard]:
        self._ears.set_audio_format(info)
        return iter(())

    def _hear_robot(self, topic: str, message: Any) -> None:
        self._tasks.put(EarsTask(topic, self._take_robot_speech, (message, self.clock.now_ns(), topic)))

    def _take_robot_speech(self, message: Any, arrival_ns: int, topic: str) -> Iterator[Heard]:
        is_record = isinstance(message, record_class(RobotSpeech))
        speech = from_ros(RobotSpeech, message, self.health_log.note_cut_texts) if is_record else message
        return self._ears.take_robot_speech(speech, arrival_ns, topic)

    def _lose_robot_topic(self, topic: str) -> None:
        self._tasks.put(EarsTask(topic, self._ears.lose_robot_topic, (topic, self.clock.now_ns())))

    def _hear_words(self, message: Any) -> None:
        if not self._active:
            return
        self._ended = False
        self._tasks.put(EarsTask(self.config.words_topic, self._ears.take_words, (message, self.clock.now_ns())))

    def _hear_voice(self, topic: str, message: Any) -> None:
        """Queue a message about voices; `topic` lies in the namespace of humans."""
        if topic == "voices/tracked":
            self._tracked_voices = tuple(filter(None, message.ids))
            if beyond := max(0, len(self._tracked_voices) - MOST_VOICES):
                self.count("voices_over_limit", beyond)
            self._voices.follow(self._tracked_voices)
        elif topic.startswith("voices/"):
            if not self._active:
                return
            self._ended = False
        arguments = (topic, message, self.clock.now_ns())
        self._tasks.put(EarsTask(f"{self.config.humans}/{topic}", self._ears.take_voice, arguments))

    def _hear_edge(self, message: Any) -> None:
        self._ended = False
        arguments = (bool(message.data), self.clock.now_ns())
        self._tasks.put(EarsTask(self.config.is_speaking_topic, self._ears.take_is_speaking, arguments))

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
                self._publish(task.run())
                self.clear_issue(f"messages on {task.topic}")
            except Exception as error:  # noqa: BLE001  whatever one message brings about must not end the thread
                self.count("messages_refused")
                why = f"{task.topic}: a message was not used: {error}"
                self.raise_issue(f"messages on {task.topic}", Health.DEGRADED, why)
        self._publish(self._ears.end_input())

    def _transcribe(self) -> None:
        transcribe = self.guard("speech", lambda: self._publish(self._ears.transcribe(timeout_s=WAIT_S)), lambda: None)
        while not self._speech.is_drained():
            transcribe()

    def _publish(self, records: Iterable[Heard]) -> None:
        for record in records:
            if isinstance(record, RobotSpeech):
                if self._robot_speech:  # otherwise this very topic carried it
                    self._robot_speech.publish(to_ros(record))
                continue
            self._utterances.publish(to_ros(record))
            if record.text:
                self.count("utterances_final" if record.final else "utterances_partial")

    def _watch(self) -> None:
        if self._robot_topics:
            self._robot_topics.find()
        if self.config.words_from == "voices":
            self._watch_voices()
        if self.config.words_from != "whisper":
            self._watch_recognizer()
        self.watch_microphone()

    def _watch_voices(self) -> None:
        """Follow voices and their owners as they come and go; note that none is tracked."""
        self._voices.look()
        self._voices.follow(self._tracked_voices)
        self._owners.look()
        self._owners.follow(())
        nobody = f"{self._words_topic}: no voice is tracked; if somebody speaks, check the recognizer's microphone"
        self.notes = () if self._tracked_voices else (nobody,)

    def _watch_recognizer(self) -> None:
        """Name a recognizer that is not there; without one, no text does not mean silence."""
        is_there = self.count_publishers(self._words_topic) > 0
        self._ears.awaits_words = is_there and self._active and not self._ended
        now_s = time.monotonic()
        if is_there:
            self._last_sound_s = now_s
        type_name = self.config.words_type if self.config.words_from == "topic" else IDS_TYPE
        if self._active and (mismatch := self.wrong_type(self._words_topic, type_name)):
            why = f"{self._words_topic}: {mismatch}, so no words of people are heard; correct words_from of ears"
            self.raise_issue("words", Health.STALE, f"{why}, or its topic and type")
            return
        longest_s = self.config.stale_after_s
        if not self._active or not longest_s or now_s - self._last_sound_s <= longest_s:
            self.clear_issue("words")
            return
        why = "nobody publishes it, so no words of people are heard; start the recognizer, or correct"
        name = "words_topic" if self.config.words_from == "topic" else "humans"
        self.raise_issue("words", Health.STALE, f"{self._words_topic}: {why} {name} of ears")

    def watch_microphone(self, now_s: float | None = None) -> None:
        """Name a microphone that vanished, and end the speech that it left unfinished; now_s is monotonic."""
        if not self._active or self.config.words_from != "whisper":
            return
        if not self.config.audio_type:
            self._state_missing_type()
            return
        topic = self.config.audio_topic
        publishers = self.count_publishers(topic)
        # DDS lists a publisher that was killed for twenty seconds more; only two that send bring too much sound.
        has_rival = publishers > 1 and self.health_log.has_issue("audio rate")
        rivals = f"{topic}: {publishers} publishers send audio; stop all but one"
        self.state_issue("publishers", rivals if has_rival else "")
        longest_s = self.config.stale_after_s
        is_silent = 0 < longest_s < (now_s or time.monotonic()) - self._last_sound_s
        if mismatch := self.wrong_type(topic, self.config.audio_type):
            remedy = "set audio_type of ears to its type, or correct audio_topic"
            self.raise_issue("microphone", Health.STALE, f"{topic}: {mismatch}; {remedy}")
            return
        if not is_silent:
            self.clear_issue("microphone")
            return
        if publishers:
            why = "because its publisher has stopped sending; check the microphone and its driver"
        else:
            why = "because nobody publishes it; start the microphone's driver, check audio_topic and ROS_DOMAIN_ID"
        self.raise_issue("microphone", Health.STALE, f"{topic}: no audio for {longest_s:g} s, {why}")
        if not self._ended:
            self._ended = True
            self._tasks.put_order(EarsTask(topic, self._ears.end_input))
