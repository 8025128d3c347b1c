"""Rates of events by condition, and their ratios, with intervals by participant."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from scoring.quantiles import t_quantile
from study_desk.analysis.study_tables import Row, StudyTables

# The minutes that a rate is for.
_RATE_MINUTES = 10
# With fewer participants, Student's t makes an interval over 1.6 times as long as with many.
MIN_UNITS = 5
# The text of the report on how rates are computed.
METHOD = (
    "Rates and rate ratios are those of a Poisson model of the events of each participant in each condition, with the "
    "log of minutes as offset. Standard errors are robust to differences between participants and to sessions of one "
    "participant (clustered, CR2), and at least those of the Poisson model. 95 % intervals are on the log scale, by "
    "Student's t at the participants of the smaller condition less 1. Without an event, a rate has an exact Poisson "
    "interval (Garwood 1936), which knows no differences between participants, and no ratio. Dispersion is the robust "
    f"variance over that of the Poisson model. With fewer than {MIN_UNITS} participants in a condition, there are "
    "counts alone."
)


@record
class EventRate:
    """A rate per ten minutes with its 95 % interval: None with fewer than MIN_UNITS participants.

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


def estimate_rate_by_unit(counts: Mapping[int, float], minutes: Mapping[int, float]) -> EventRate | None:
    """Estimate a rate from the events and minutes of each participant or group. None without any minutes."""
    units = [unit for unit, length in minutes.items() if length > 0]
    if not units:
        return None
    events = sum(round(counts[unit]) for unit in units)
    length = sum(minutes[unit] for unit in units)
    rate = EventRate(events=events, minutes=length, participants=len(units), rate=events / length * _RATE_MINUTES)
    if len(units) < MIN_UNITS:
        return rate
    if not events:
        return replace(rate, low=0.0, high=-math.log(0.025) / length * _RATE_MINUTES)  # exact of a Poisson count
    variance = sum(deviation**2 for deviation in _compute_deviations(counts, minutes).values())
    low, high = _compute_interval(rate.rate, max(variance, 1 / events), len(units))
    return replace(rate, low=low, high=high, dispersion=variance * events)


def estimate_ratio(rows: Iterable[Row], reference: Iterable[Row], column: str) -> RateRatio:
    """Compare the rates of a column of sessions.csv in two conditions, whose participants may be the same."""
    rows_of_conditions = [tuple(rows), tuple(reference)]
    rates = [estimate_rate(condition_rows, column) for condition_rows in rows_of_conditions]
    if not all(rate and rate.events and rate.participants >= MIN_UNITS for rate in rates):
        return RateRatio()
    first, second = (rate for rate in rates if rate)
    in_first, in_second = (
        _compute_deviations(_sum_by_cluster(condition_rows, column), _sum_by_cluster(condition_rows, "minutes"))
        for condition_rows in rows_of_conditions
    )
    variance = sum((in_first.get(unit, 0) - in_second.get(unit, 0)) ** 2 for unit in in_first | in_second)
    variance = max(variance, 1 / first.events + 1 / second.events)
    ratio = first.rate / second.rate
    low, high = _compute_interval(ratio, variance, min(first.participants, second.participants))
    return RateRatio(ratio=ratio, low=low, high=high)


def _compute_deviations(counts: Mapping[int, float], minutes: Mapping[int, float]) -> dict[int, float]:
    """Compute how far each unit moves the log of the rate, corrected for its leverage, which is its share of time."""
    events = sum(counts.values())
    length = sum(minutes.values())
    return {
        unit: (counts[unit] / events - unit_length / length) / math.sqrt(1 - unit_length / length)
        for unit, unit_length in minutes.items()
        if unit_length > 0
    }


def _compute_interval(value: float, variance: float, participants: int) -> tuple[float, float]:
    reach = math.exp(t_quantile(0.975, participants - 1) * math.sqrt(variance))
    return value / reach, value * reach


def estimate_rate(rows: Iterable[Row], column: str) -> EventRate | None:
    """Estimate the rate of a column of sessions.csv, summed by group of sessions that share participants."""
    rows = tuple(rows)
    return estimate_rate_by_unit(_sum_by_cluster(rows, column), _sum_by_cluster(rows, "minutes"))


def _sum_by_cluster(rows: Iterable[Row], column: str) -> dict[int, float]:
    """Sum a column by group of sessions that share participants."""
    sums: dict[int, float] = {}
    for row in rows:
        sums[row["cluster"]] = sums.get(row["cluster"], 0) + row[column]
    return sums


def group_rows(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Group rows, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def warn_of_few_units(tables: StudyTables) -> Iterator[str]:
    """Yield a warning of the conditions with few units."""
    rows = [row for row in tables.analysed if row["minutes"] > 0]
    by_condition = group_rows(rows, lambda row: row["condition"])
    unit_counts = {name: len(_sum_by_cluster(by_condition[name], "minutes")) for name in by_condition}
    if few := {name: count for name, count in unit_counts.items() if count < MIN_UNITS}:
        counts = ", ".join(f"{count_of(count, 'unit')} in {name or 'no condition'}" for name, count in few.items())
        yield (
            f"{counts}: with fewer than {MIN_UNITS} units (participants, or groups who share sessions), no rate has an "
            "interval and no ratio is computed. Show counts, not conclusions."
        )
