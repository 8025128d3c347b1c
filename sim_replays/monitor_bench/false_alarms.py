"""Count false alarms per hour: errors flagged in talk without errors."""

from collections import Counter
from collections.abc import Iterable

from norm_core.evaluation.intervals import poisson_interval
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import Meaning
from norm_monitor.cues.threshold_table import ThresholdTable
from sim_replays.drivers.script_driver import monitor_script
from sim_replays.scenarios.encounter import Encounter


@record
class FalseAlarms:
    """The count, hours and cues of false alarms, with the exact Poisson interval of the rate."""

    hours: float
    count: int
    per_hour: float
    per_hour_interval: tuple[float, float]
    by_cue: dict[str, int]


def false_alarms(talks: Iterable[Encounter], meaning: Meaning, table: ThresholdTable, seed: int) -> FalseAlarms:
    """Count every error that is flagged in error-free talk."""
    hours, by_cue = 0.0, Counter[str]()
    for talk in talks:
        session = monitor_script(talk, meaning, table, seed)
        hours += (session.truth.end_ns - session.truth.start_ns) / NS_PER_S / 3600
        by_cue.update(alarm.cue_id for alarm in session.alarms if alarm.polarity is Polarity.ERROR)
    count = by_cue.total()
    low, high = poisson_interval(count)
    per_hour = 1 / hours if hours else 0.0
    return FalseAlarms(
        hours=hours,
        count=count,
        per_hour=count * per_hour,
        per_hour_interval=(low * per_hour, high * per_hour),
        by_cue=dict(by_cue),
    )
