"""Turn what a robot senses into flags of social errors and competences."""

from typing import TYPE_CHECKING

import norm_core  # noqa: F401  before any library of the modules here, so that its usage reports are off
from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from norm_monitor.context.meaning import Meaning, Meanings
    from norm_monitor.context.memory import MemoryConfig
    from norm_monitor.context.scene import Scene
    from norm_monitor.cues.finding import Finding, LookAgain, evidence_of
    from norm_monitor.cues.threshold_table import Cue, Threshold, ThresholdTable
    from norm_monitor.ears import Ears
    from norm_monitor.exchange.classifier import ExchangeClassifier
    from norm_monitor.eyes import Eyes
    from norm_monitor.fusion.fusion import Fusion, FusionConfig
    from norm_monitor.fusion.unit_model import Sensitivity, UnitModel
    from norm_monitor.judge.deployment_context import DeploymentContext
    from norm_monitor.judge.judge import Judge, JudgeConfig, JudgeModel
    from norm_monitor.monitor import Monitor, MonitorConfig
    from norm_monitor.senses.camera.frame_keeper import FrameConfig
    from norm_monitor.senses.camera.picture import Picture, PictureFormatError
    from norm_monitor.senses.faces.finder import FaceFinder
    from norm_monitor.senses.microphone.audio_message import SoundChunk
    from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
    from norm_monitor.senses.microphone.sound_file import SoundFileError, chunks_of
    from norm_monitor.senses.people.adapter import PeopleAdapter, PeopleConfig
    from norm_monitor.senses.robot_voice.robot_voice import RobotVoiceConfig
    from norm_monitor.senses.speech.hearing import HearingConfig
    from norm_monitor.senses.speech.recognition import RecognizedSpeech, Recognizer
    from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
    from norm_monitor.units.judgement import UnitJudgement
    from norm_monitor.units.unit import Unit, UnitKind
    from norm_monitor.units.unit_view import UnitView
    from norm_monitor.windows.window_config import WindowConfig

__all__ = [
    "Cue",
    "DeploymentContext",
    "Ears",
    "ExchangeClassifier",
    "Eyes",
    "FaceFinder",
    "Finding",
    "FrameConfig",
    "Fusion",
    "FusionConfig",
    "HearingConfig",
    "Judge",
    "JudgeConfig",
    "JudgeModel",
    "LookAgain",
    "Meaning",
    "Meanings",
    "MemoryConfig",
    "Monitor",
    "MonitorConfig",
    "PcmFormat",
    "PeopleAdapter",
    "PeopleConfig",
    "Picture",
    "PictureFormatError",
    "RecognizedSpeech",
    "Recognizer",
    "RobotVoiceConfig",
    "Scene",
    "Sensitivity",
    "SoundChunk",
    "SoundError",
    "SoundFileError",
    "Threshold",
    "ThresholdTable",
    "Unit",
    "UnitJudgement",
    "UnitKind",
    "UnitModel",
    "UnitView",
    "Whisper",
    "WhisperConfig",
    "WindowConfig",
    "chunks_of",
    "evidence_of",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "context.meaning": ("Meaning", "Meanings"),
            "context.memory": ("MemoryConfig",),
            "context.scene": ("Scene",),
            "cues.finding": ("Finding", "LookAgain", "evidence_of"),
            "cues.threshold_table": ("Cue", "Threshold", "ThresholdTable"),
            "ears": ("Ears",),
            "exchange.classifier": ("ExchangeClassifier",),
            "eyes": ("Eyes",),
            "fusion.fusion": ("Fusion", "FusionConfig"),
            "fusion.unit_model": ("Sensitivity", "UnitModel"),
            "judge.deployment_context": ("DeploymentContext",),
            "judge.judge": ("Judge", "JudgeConfig", "JudgeModel"),
            "monitor": ("Monitor", "MonitorConfig"),
            "senses.camera.frame_keeper": ("FrameConfig",),
            "senses.camera.picture": ("Picture", "PictureFormatError"),
            "senses.faces.finder": ("FaceFinder",),
            "senses.microphone.audio_message": ("SoundChunk",),
            "senses.microphone.pcm": ("PcmFormat", "SoundError"),
            "senses.microphone.sound_file": ("SoundFileError", "chunks_of"),
            "senses.people.adapter": ("PeopleAdapter", "PeopleConfig"),
            "senses.robot_voice.robot_voice": ("RobotVoiceConfig",),
            "senses.speech.hearing": ("HearingConfig",),
            "senses.speech.recognition": ("RecognizedSpeech", "Recognizer"),
            "senses.speech.whisper": ("Whisper", "WhisperConfig"),
            "units.judgement": ("UnitJudgement",),
            "units.unit": ("Unit", "UnitKind"),
            "units.unit_view": ("UnitView",),
            "windows.window_config": ("WindowConfig",),
        },
    )
