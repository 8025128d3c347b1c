"""The configuration of speech recognition."""

from pydantic import Field

from norm_core.engines.providers import PROVIDER_ORDER, Provider
from norm_core.runtime.config import Config
from norm_monitor.senses.microphone.pcm import PcmFormat
from norm_monitor.senses.robot_voice.robot_voice import RobotVoiceConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig, VoiceActivityConfig
from norm_monitor.senses.speech.text_guards import GuardConfig
from norm_monitor.senses.speech.whisper import WhisperConfig


class HearingConfig(Config):
    """The microphone, segmentation and robot voice settings of the ears."""

    channel: int = Field(default=0, ge=-1, le=7, description="microphone channel, from 0; -1 for the mean of all")
    stated: PcmFormat = Field(default=PcmFormat(), description="the format of messages that state none")
    voice: VoiceActivityConfig = VoiceActivityConfig()
    voice_providers: tuple[Provider, ...] = Field(
        default=("cpu",), description=f"ONNX Runtime's providers for voice activity, {PROVIDER_ORDER}"
    )
    segments: SegmentConfig = SegmentConfig()
    guards: GuardConfig = GuardConfig()
    robot: RobotVoiceConfig = RobotVoiceConfig()
    whisper: WhisperConfig = WhisperConfig()
