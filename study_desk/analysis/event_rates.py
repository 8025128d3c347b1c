"""Rates of events by condition, with intervals, and warnings where few units stand behind them."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from norm_core.evaluation.quantiles import poisson_interval, t_quantile
from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from study_desk.analysis.study_tables import StudyTables

PER_MINUTES = 10
_MAX_LOG = 700  # an interval that reaches farther has no bound
METHOD = (
    "Intervals are 95 % intervals of a quasi-Poisson model: on the log scale, by Student's t, with the dispersion "
    "between participants taken from the data and at least 1. With one participant or no event, they are exact Poisson "
    "intervals (Garwood 1936), which know no differences between participants."
)


@record
class EventRate:
    """A rate per ten minutes with its 95 % interval. `dispersion` is None where one participant tells none."""

    events: int
    minutes: float
    participants: int
    rate: float
    low: float
    high: float
    dispersion: float | None


def event_rate(counts: Sequence[int], minutes: Sequence[float]) -> EventRate | None:
    """Estimate a rate from each participant's events and minutes. None without any minutes."""
    pairs = [(count, length) for count, length in zip(counts, minutes, strict=True) if length > 0]
    events, length, number = sum(count for count, _ in pairs), sum(length for _, length in pairs), len(pairs)
    if not pairs:
        return None
    mean = events / length
    dispersion = None
    if number > 1 and events:
        dispersion = sum((y - mean * t) ** 2 / (mean * t) for y, t in pairs) / (number - 1)
        log_reach = t_quantile(0.975, number - 1) * math.sqrt(max(1.0, dispersion) / events)
        reach = math.exp(log_reach) if log_reach < _MAX_LOG else math.inf
        low, high = mean / reach, mean * reach
    else:
        low, high = (bound / length for bound in poisson_interval(events))
    return EventRate(
        events=events,
        minutes=length,
        participants=number,
        rate=mean * PER_MINUTES,
        low=low * PER_MINUTES,
        high=high * PER_MINUTES,
        dispersion=dispersion,
    )


def rate_of(rows: Iterable[dict[str, Any]], column: str) -> EventRate | None:
    """Estimate the rate of a column of sessions.csv, summed by group of sessions that share participants."""
    counts, minutes = by_cluster(rows, column), by_cluster(rows, "minutes")
    return event_rate([int(count) for count in counts.values()], list(minutes.values()))


def by_cluster(rows: Iterable[dict[str, Any]], column: str) -> dict[int, float]:
    """Sum a column by group of sessions that share participants."""
    sums: dict[int, float] = {}
    for row in rows:
        sums[row["cluster"]] = sums.get(row["cluster"], 0) + row[column]
    return sums


def grouped(rows: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> dict[str, list[dict[str, Any]]]:
    """Group rows, in their order."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


FEW_UNITS = 5  # below, Student's t makes an interval over 1.6 times as long as with many participants
FEW_CLUSTERS = 30  # below, a normal interval with robust errors holds the true ratio in under 93 % of studies


def few_units(tables: StudyTables) -> Iterator[str]:
    """Yield a warning for the conditions with few units, and one for few clusters in the whole study."""
    rows = [row for row in tables.analysed if row["minutes"] > 0]
    units = {name: len(by_cluster(of, "minutes")) for name, of in grouped(rows, lambda r: r["condition"]).items()}
    if few := {name: number for name, number in units.items() if number < FEW_UNITS}:
        named = ", ".join(f"{count_of(number, 'unit')} in {name or 'no condition'}" for name, number in few.items())
        yield (
            f"{named}: with fewer than {FEW_UNITS} units (participants, or groups who share sessions), an interval "
            "says little. With 2 units it is 6 times as long as with many. With 1 unit it leaves out how participants "
            "differ. Show counts, not conclusions."
        )
    clusters = len(by_cluster(rows, "minutes"))
    if 0 < clusters < FEW_CLUSTERS:
        yield (
            f"{count_of(clusters, 'cluster')}: with fewer than {FEW_CLUSTERS} clusters, std_error_robust of analysis.R "
            "and analysis.py is too small. Take Student's t with clusters - 1 degrees of freedom, and even so expect "
            "intervals that are too short."
        )
