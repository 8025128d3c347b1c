"""Data, time and configuration that all of Tactful shares.

Engines, models, bags and measures are in `norm_core.engines`, `norm_core.models`, `norm_core.bags` and
`norm_core.evaluation`.
"""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports
from norm_core.runtime.telemetry import disable_telemetry

if TYPE_CHECKING:
    from norm_core.records.decision import CandidateJudgement, Decision, Duplicable, Norm, OtherAgent, Veto, Viewpoint
    from norm_core.records.episode import Answer, Episode, EpisodeEdge, Query
    from norm_core.records.flag import (
        Attribute,
        Evidence,
        Failure,
        FlagState,
        Polarity,
        Severity,
        SocialFlag,
        Tier,
        Verdict,
    )
    from norm_core.records.frame import Frame
    from norm_core.records.json_codec import RecordError, from_json, to_json
    from norm_core.records.outcome import Outcome
    from norm_core.records.presence import Engagement, Face, Gaze, Person, Presence, PresenceState
    from norm_core.records.provenance import LatencySegment, Provenance
    from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Timing, Utterance, Word
    from norm_core.records.status import Counter, Health, MonitorStatus, NodeState, QueueStatus
    from norm_core.records.window import ClosedWindow, Window
    from norm_core.runtime.config import Config, ConfigError, load_config
    from norm_core.runtime.errors import TactfulError
    from norm_core.runtime.health_log import HealthLog
    from norm_core.runtime.time import Clock, ReplayClock, WallClock, ns_to_s, s_to_ns

__all__ = [
    "Answer",
    "Attribute",
    "CandidateJudgement",
    "Clock",
    "ClosedWindow",
    "Config",
    "ConfigError",
    "Counter",
    "Decision",
    "Duplicable",
    "Engagement",
    "Episode",
    "EpisodeEdge",
    "Evidence",
    "Face",
    "Failure",
    "FlagState",
    "Frame",
    "Gaze",
    "Health",
    "HealthLog",
    "LatencySegment",
    "MonitorStatus",
    "NodeState",
    "Norm",
    "OtherAgent",
    "Outcome",
    "Person",
    "Polarity",
    "Presence",
    "PresenceState",
    "Provenance",
    "Query",
    "QueueStatus",
    "RecordError",
    "ReplayClock",
    "RobotSpeech",
    "Severity",
    "SocialFlag",
    "Speaker",
    "SpeechEdge",
    "TactfulError",
    "Tier",
    "Timing",
    "Utterance",
    "Verdict",
    "Veto",
    "Viewpoint",
    "WallClock",
    "Window",
    "Word",
    "from_json",
    "load_config",
    "ns_to_s",
    "s_to_ns",
    "to_json",
]

__version__ = "0.1.0"

disable_telemetry()

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "records.decision": (
                "CandidateJudgement",
                "Decision",
                "Duplicable",
                "Norm",
                "OtherAgent",
                "Veto",
                "Viewpoint",
            ),
            "records.episode": ("Answer", "Episode", "EpisodeEdge", "Query"),
            "records.flag": (
                "Attribute",
                "Evidence",
                "Failure",
                "FlagState",
                "Polarity",
                "Severity",
                "SocialFlag",
                "Tier",
                "Verdict",
            ),
            "records.frame": ("Frame",),
            "records.json_codec": ("RecordError", "from_json", "to_json"),
            "records.outcome": ("Outcome",),
            "records.presence": ("Engagement", "Face", "Gaze", "Person", "Presence", "PresenceState"),
            "records.provenance": ("LatencySegment", "Provenance"),
            "records.speech": ("RobotSpeech", "Speaker", "SpeechEdge", "Timing", "Utterance", "Word"),
            "records.status": ("Counter", "Health", "MonitorStatus", "NodeState", "QueueStatus"),
            "records.window": ("ClosedWindow", "Window"),
            "runtime.config": ("Config", "ConfigError", "load_config"),
            "runtime.errors": ("TactfulError",),
            "runtime.health_log": ("HealthLog",),
            "runtime.time": ("Clock", "ReplayClock", "WallClock", "ns_to_s", "s_to_ns"),
        },
    )
