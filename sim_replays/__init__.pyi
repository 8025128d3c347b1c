"""The public names of sim_replays, for type checkers and for lazy import."""

from .drivers.bag_driver import feed_monitor as feed_monitor
from .drivers.bag_driver import replay_monitor as replay_monitor
from .drivers.node_driver import NodeOutput as NodeOutput
from .drivers.node_driver import TransportError as TransportError
from .drivers.node_driver import play_to_nodes as play_to_nodes
from .drivers.node_process import NodeProcess as NodeProcess
from .drivers.node_process import NodeProcessError as NodeProcessError
from .drivers.script_driver import monitor_from_sound as monitor_from_sound
from .drivers.script_driver import monitor_script as monitor_script
from .monitor_bench.event_metrics import EventSession as EventSession
from .monitor_bench.event_metrics import OnlineScores as OnlineScores
from .monitor_bench.event_metrics import score_online as score_online
from .monitor_bench.interval_metrics import IntervalAgreement as IntervalAgreement
from .monitor_bench.interval_metrics import interval_agreement as interval_agreement
from .runs.run_config import RunConfig as RunConfig
from .scenarios.encounter import Encounter as Encounter
from .scenarios.encounter import MarkedEvent as MarkedEvent
from .scenarios.encounter import ScriptedPerson as ScriptedPerson
from .scenarios.encounter import ScriptedTurn as ScriptedTurn
from .scenarios.generate import GenerationConfig as GenerationConfig
from .scenarios.generate import generate as generate
from .suites.report import Report as Report
from .suites.target import Prediction as Prediction
from .suites.target import Suite as Suite
from .suites.target import SuiteError as SuiteError
from .suites.target import Target as Target
