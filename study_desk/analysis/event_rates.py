"""Rates of events by condition, and their ratios, with intervals by participant."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from scoring.quantiles import poisson_interval, t_quantile
from study_desk.analysis.study_tables import Row, StudyTables

PER_MINUTES = 10
FEW_UNITS = 5  # below, Student's t makes an interval over 1.6 times as long as with many participants
METHOD = (
    "Rates and rate ratios are those of a Poisson model of the events of each participant in each condition, with the "
    "log of minutes as offset. Standard errors are robust to differences between participants and to sessions of one "
    "participant (clustered, CR2), and at least those of the Poisson model. 95 % intervals are on the log scale, by "
    "Student's t at the participants of the smaller condition less 1. Without an event, a rate has an exact Poisson "
    "interval (Garwood 1936), which knows no differences between participants, and no ratio. Dispersion is the robust "
    f"variance over that of the Poisson model. With fewer than {FEW_UNITS} participants in a condition, there are "
    "counts alone."
)


@record
class EventRate:
    """A rate per ten minutes with its 95 % interval: None with fewer than FEW_UNITS participants.

    `dispersion` is the robust variance over that of a Poisson model; None also without an event.
    """

    events: int
    minutes: float
    participants: int
    rate: float
    low: float | None = None
    high: float | None = None
    dispersion: float | None = None


@record
class RateRatio:
    """A rate over a reference rate, with its 95 % interval; None with few participants or without an event."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def event_rate(counts: Mapping[int, float], minutes: Mapping[int, float]) -> EventRate | None:
    """Estimate a rate from the events and minutes of each participant or group. None without any minutes."""
    units = [unit for unit, length in minutes.items() if length > 0]
    events, length = sum(round(counts[unit]) for unit in units), sum(minutes[unit] for unit in units)
    if not units:
        return None
    rate = EventRate(events=events, minutes=length, participants=len(units), rate=events / length * PER_MINUTES)
    if len(units) < FEW_UNITS:
        return rate
    if not events:
        low, high = (bound / length * PER_MINUTES for bound in poisson_interval(events))
        return replace(rate, low=low, high=high)
    variance = sum(deviation**2 for deviation in _deviations(counts, minutes).values())
    low, high = _interval(rate.rate, max(variance, 1 / events), len(units))
    return replace(rate, low=low, high=high, dispersion=variance * events)


def rate_ratio(rows: Iterable[Row], reference: Iterable[Row], column: str) -> RateRatio:
    """Compare the rates of a column of sessions.csv in two conditions, whose participants may be the same."""
    conditions = [tuple(rows), tuple(reference)]
    rates = [rate_of(of, column) for of in conditions]
    if not all(rate and rate.events and rate.participants >= FEW_UNITS for rate in rates):
        return RateRatio()
    first, second = (rate for rate in rates if rate)
    in_first, in_second = (_deviations(by_cluster(of, column), by_cluster(of, "minutes")) for of in conditions)
    variance = sum((in_first.get(unit, 0) - in_second.get(unit, 0)) ** 2 for unit in in_first | in_second)
    variance = max(variance, 1 / first.events + 1 / second.events)
    ratio = first.rate / second.rate
    low, high = _interval(ratio, variance, min(first.participants, second.participants))
    return RateRatio(ratio=ratio, low=low, high=high)


def _deviations(counts: Mapping[int, float], minutes: Mapping[int, float]) -> dict[int, float]:
    """Compute how far each unit moves the log of the rate, corrected for its leverage, which is its share of time."""
    events, length = sum(counts.values()), sum(minutes.values())
    return {
        unit: (counts[unit] / events - of_unit / length) / math.sqrt(1 - of_unit / length)
        for unit, of_unit in minutes.items()
        if of_unit > 0
    }


def _interval(value: float, variance: float, participants: int) -> tuple[float, float]:
    reach = math.exp(t_quantile(0.975, participants - 1) * math.sqrt(variance))
    return value / reach, value * reach


def rate_of(rows: Iterable[Row], column: str) -> EventRate | None:
    """Estimate the rate of a column of sessions.csv, summed by group of sessions that share participants."""
    rows = tuple(rows)
    return event_rate(by_cluster(rows, column), by_cluster(rows, "minutes"))


def by_cluster(rows: Iterable[Row], column: str) -> dict[int, float]:
    """Sum a column by group of sessions that share participants."""
    sums: dict[int, float] = {}
    for row in rows:
        sums[row["cluster"]] = sums.get(row["cluster"], 0) + row[column]
    return sums


def grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Group rows, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def few_units(tables: StudyTables) -> Iterator[str]:
    """Yield a warning of the conditions with few units."""
    rows = [row for row in tables.analysed if row["minutes"] > 0]
    units = {name: len(by_cluster(of, "minutes")) for name, of in grouped(rows, lambda r: r["condition"]).items()}
    if few := {name: number for name, number in units.items() if number < FEW_UNITS}:
        named = ", ".join(f"{count_of(number, 'unit')} in {name or 'no condition'}" for name, number in few.items())
        yield (
            f"{named}: with fewer than {FEW_UNITS} units (participants, or groups who share sessions), no rate has an "
            "interval and no ratio is computed. Show counts, not conclusions."
        )
