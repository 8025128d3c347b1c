"""The public names of sim_replays, for type checkers and for lazy import."""

from .items.run_config import RunConfig as RunConfig
from .items.target import Prediction as Prediction
from .items.target import SuiteError as SuiteError
from .items.target import Target as Target
from .monitor_bench.event_metrics import EventSession as EventSession
from .monitor_bench.event_metrics import OnlineScores as OnlineScores
from .monitor_bench.event_metrics import score_online as score_online
from .monitor_bench.script_driver import monitor_script as monitor_script
from .suites.report import Report as Report
from .suites.suite import Suite as Suite
