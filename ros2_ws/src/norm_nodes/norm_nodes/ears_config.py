"""The parameters of the node ears."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from norm_core.engines.providers import PROVIDER_ORDER, Provider
from norm_core.records.topics import ROBOT_SPEECH_TOPIC
from norm_monitor.senses.microphone.pcm import PcmFormat
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.whisper import Device, Languages, WhisperConfig
from norm_nodes.base.norm_node import STALE_AFTER_S, NodeConfig
from norm_nodes.tracked_ids import HUMANS_PATTERN, SPEECH_TYPE


class EarsConfig(NodeConfig):
    """Topics, message types and models of the ears node."""

    audio_topic: str = Field("/audio", min_length=1, description="topic of the microphone")
    audio_type: str = Field(
        "",
        description="message type of audio_topic, such as naoqi_bridge_msgs/msg/AudioBuffer; empty for no microphone",
    )
    audio_info_topic: str = Field("", description="topic that states the format of raw bytes; empty for none")
    audio_info_type: str = Field(
        "audio_common_msgs/msg/AudioInfo", min_length=1, description="message type of audio_info_topic"
    )
    robot_speech_topic: str = Field(
        ROBOT_SPEECH_TOPIC,
        min_length=1,
        description="topic or action with the robot's own speech: text, captions, a Bool that is true while it speaks, "
        "or audio, which is then transcribed",
    )
    robot_speech_type: str = Field("", description="message type of robot_speech_topic; empty to detect it")
    robot_speaking_topic: str = Field(
        "", description="topic that times the words of robot_speech_topic, such as a Bool; empty to estimate the times"
    )
    robot_speaker_ids: tuple[str, ...] = Field(
        (), description="speaker ids of the robot in captions; empty if all captions are the robot's"
    )
    robot_lateness_ms: int = Field(
        300, ge=0, le=10_000, description="longest delay of robot speech messages behind the sound"
    )
    robot_offset_ms: int = Field(0, ge=-2000, le=2000, description="milliseconds to add to the stamps of robot speech")
    words_from: Literal["whisper", "topic", "voices"] = Field(
        "whisper",
        description="whisper, or the robot's own recognizer: topic if it publishes texts, voices if it publishes "
        "them by voice (REP-155)",
    )
    humans: str = Field(
        "/humans",
        pattern=HUMANS_PATTERN,
        description="namespace of voices and persons, for words_from: voices and publish_hri",
    )
    publish_hri: bool = Field(
        False, description="whether words that Whisper hears are published as a voice of REP-155 below humans"
    )
    words_topic: str = Field(
        "/humans/voices/anonymous_speaker/speech", min_length=1, description="topic of the robot's own recognizer"
    )
    words_type: str = Field(SPEECH_TYPE, min_length=1, description="message type of words_topic")
    is_speaking_topic: str = Field(
        "/humans/voices/anonymous_speaker/is_speaking",
        description="Bool that times the texts of words_topic; empty for none",
    )
    words_lateness_ms: int = Field(
        2000,
        ge=0,
        le=10_000,
        description="longest delay of texts on words_topic behind the speech; silences are detected this much later",
    )
    channel: int = Field(0, ge=-1, le=7, description="microphone channel, from 0; -1 for the mean of all")
    sample_format: str = Field("s16le", description="sample format of messages that do not state theirs")
    rate_hz: int = Field(16_000, ge=8_000, le=96_000, description="rate of messages that do not state theirs")
    channels: int = Field(1, ge=1, le=8, description="number of channels of messages that do not state theirs")
    model: str = Field(
        "", description="a model such as whisper-base, or the folder of one for CTranslate2; empty for whisper-tiny-en"
    )
    language: Languages = Field(
        "en",
        description="language code, such as en; several, such as en,zh, to detect one of them; auto to detect any",
    )
    whisper_device: Device = Field(
        "cpu", description="cpu, cuda, or auto for cuda if there is a GPU; if cuda fails, the CPU is used"
    )
    whisper_compute_type: str = Field(
        "", description="CTranslate2's number type, such as float16; empty for float16 on cuda, int16 or float32 on cpu"
    )
    voice_providers: tuple[Provider, ...] = Field(
        ("cpu",), description=f"ONNX Runtime providers for voice activity, {PROVIDER_ORDER}"
    )
    partial_every_s: float = Field(
        2.0, ge=0, le=30, description="interval of partial results during speech; 0 for none"
    )
    stale_after_s: float = STALE_AFTER_S

    @field_validator("publish_hri")
    @classmethod
    def _check_publish_hri(cls, publishes: bool, info: ValidationInfo) -> bool:
        if publishes and info.data.get("words_from") != "whisper":
            raise ValueError("it is for words_from: whisper alone; set it to false")
        return publishes

    def make_hearing_config(self) -> HearingConfig:
        """Return the same settings as the configuration of the speech path."""
        return HearingConfig(
            channel=self.channel,
            stated=PcmFormat(sample_format=self.sample_format, rate_hz=self.rate_hz, channels=self.channels),
            partial_every_s=self.partial_every_s,
            robot_lateness_ms=self.robot_lateness_ms,
            voice_providers=self.voice_providers,
            whisper=WhisperConfig(
                model=self.model,
                language=self.language,
                device=self.whisper_device,
                compute_type=self.whisper_compute_type,
            ),
        )
