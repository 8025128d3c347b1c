"""False alarms an hour: the errors that the monitor flags in talk in which there is none."""

import math
from collections import Counter
from collections.abc import Callable, Iterable

from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import Meaning
from norm_monitor.cues.threshold_table import Table
from sim_replays.drivers.script_driver import watched
from sim_replays.scenarios.encounter import Encounter


@record
class FalseAlarms:
    """How many, in how many hours, by which cues; the interval is the exact one of a Poisson rate."""

    hours: float
    count: int
    per_hour: float
    per_hour_interval: tuple[float, float]
    by_cue: dict[str, int]


def false_alarms(talks: Iterable[Encounter], meaning: Meaning, table: Table, seed: int) -> FalseAlarms:
    """Whatever error is flagged in talks without one."""
    hours, by_cue = 0.0, Counter[str]()
    for talk in talks:
        session = watched(talk, meaning, table, seed)
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


def poisson_interval(count: int, outside: float = 0.05) -> tuple[float, float]:
    """The means for which so few, or so many, come up with a probability of half of what lies outside."""
    low = _mean_where(lambda mean: 1 - _at_most(count - 1, mean), outside / 2, count) if count else 0.0
    return low, _mean_where(lambda mean: 1 - _at_most(count, mean), 1 - outside / 2, count)


def _at_most(count: int, mean: float) -> float:
    return sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1))


def _mean_where(rising: Callable[[float], float], wanted: float, count: int) -> float:
    below, above = 1e-9, 10.0 + 4 * count
    for _ in range(60):
        middle = (below + above) / 2
        below, above = (middle, above) if rising(middle) < wanted else (below, middle)
    return (below + above) / 2
