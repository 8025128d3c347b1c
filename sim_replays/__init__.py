"""Replay recorded sessions and benchmark suites through the same roles and nodes that run on a robot."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
    from sim_replays.drivers.node_driver import NodeOutput, TransportError, play_to_nodes
    from sim_replays.drivers.node_process import NodeProcess, NodeProcessError
    from sim_replays.drivers.script_driver import monitor_from_sound, monitor_script
    from sim_replays.monitor_bench.event_metrics import EventSession, OnlineScores, score_online
    from sim_replays.monitor_bench.interval_metrics import IntervalAgreement, interval_agreement
    from sim_replays.monitor_bench.judge_triggering import Triggering, measure_triggering
    from sim_replays.runs.run_config import RunConfig
    from sim_replays.scenarios.encounter import Encounter, MarkedEvent, ScriptedPerson, ScriptedTurn
    from sim_replays.scenarios.generate import GenerationConfig, generate
    from sim_replays.suites.report import Report
    from sim_replays.suites.target import Prediction, Suite, SuiteError, Target

__all__ = [
    "Encounter",
    "EventSession",
    "GenerationConfig",
    "IntervalAgreement",
    "MarkedEvent",
    "NodeOutput",
    "NodeProcess",
    "NodeProcessError",
    "OnlineScores",
    "Prediction",
    "Report",
    "RunConfig",
    "ScriptedPerson",
    "ScriptedTurn",
    "Suite",
    "SuiteError",
    "Target",
    "TransportError",
    "Triggering",
    "feed_monitor",
    "generate",
    "interval_agreement",
    "measure_triggering",
    "monitor_from_sound",
    "monitor_script",
    "play_to_nodes",
    "replay_monitor",
    "score_online",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "drivers.bag_driver": ("feed_monitor", "replay_monitor"),
            "drivers.node_driver": ("NodeOutput", "TransportError", "play_to_nodes"),
            "drivers.node_process": ("NodeProcess", "NodeProcessError"),
            "drivers.script_driver": ("monitor_from_sound", "monitor_script"),
            "monitor_bench.event_metrics": ("EventSession", "OnlineScores", "score_online"),
            "monitor_bench.interval_metrics": ("IntervalAgreement", "interval_agreement"),
            "monitor_bench.judge_triggering": ("Triggering", "measure_triggering"),
            "runs.run_config": ("RunConfig",),
            "scenarios.encounter": ("Encounter", "MarkedEvent", "ScriptedPerson", "ScriptedTurn"),
            "scenarios.generate": ("GenerationConfig", "generate"),
            "suites.report": ("Report",),
            "suites.target": ("Prediction", "Suite", "SuiteError", "Target"),
        },
    )
