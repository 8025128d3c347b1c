"""Rates of events per ten minutes, with intervals that allow for differences between participants."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from norm_core.evaluation.quantiles import poisson_interval, t_quantile
from norm_core.records.record import record

PER_MINUTES = 10
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
        reach = math.exp(t_quantile(0.975, number - 1) * math.sqrt(max(1.0, dispersion) / events))
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
