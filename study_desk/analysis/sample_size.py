"""Compute how many participants a study of two conditions needs to find a difference between rates of events."""

import math
from statistics import NormalDist

import numpy as np

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from scoring.quantiles import t_quantile
from study_desk.analysis.event_rates import FEW_UNITS, PER_MINUTES, by_cluster, grouped
from study_desk.analysis.study_tables import StudyTables

_LEVEL = 0.05  # of the two-sided test


@record
class PlanAssumptions:
    """The assumptions of a plan: rates per ten minutes, sessions of `minutes`, and differences of participants.

    `spread` is the coefficient of variation of participants' own rates within a condition. `correlation` is that of
    their own rates between the conditions, if each meets both.
    """

    rate_a: float
    rate_b: float
    minutes: float
    spread: float
    correlation: float | None = None

    def __post_init__(self) -> None:
        """Raises TactfulError for values that allow no plan."""
        values = {"rate of a": self.rate_a, "rate of b": self.rate_b, "length of a session": self.minutes}
        for name, value in values.items():
            if not (math.isfinite(value) and value > 0):
                raise TactfulError(f"the {name} is {value:g}: give one above 0")
        if self.rate_a == self.rate_b:
            raise TactfulError("both rates are equal: give the smallest difference that the study is to find")
        if not (math.isfinite(self.spread) and self.spread >= 0):
            raise TactfulError(f"the spread is {self.spread:g}: give 0 or more")

    @property
    def means(self) -> tuple[float, float]:
        """The expected events of a session in each condition."""
        return self.rate_a * self.minutes / PER_MINUTES, self.rate_b * self.minutes / PER_MINUTES


@record
class Pilot:
    """The figures of a pilot study: rates by condition, mean minutes of a session, and the spread.

    `spread` is None if no condition has two units to compare.
    """

    rates: dict[str, float]
    minutes: float
    spread: float | None
    units: int  # participants, or groups who share sessions
    is_within: bool  # somebody took part in several conditions


def sample_size(plan: PlanAssumptions, power: float) -> int:
    """Compute participants per condition for two negative binomial rates (Zhu and Lakkis 2014, variance 2).

    Student's t takes the place of the normal quantile of the level, as in the interval of a rate ratio. If each
    participant meets both conditions, what is common to their two rates cancels out of the ratio.
    """
    a, b = plan.means
    variance = (1 / a + 1 / b + 2 * (1 - (plan.correlation or 0)) * plan.spread**2) / math.log(b / a) ** 2
    of_power, of_level = NormalDist().inv_cdf(power), NormalDist().inv_cdf(1 - _LEVEL / 2)
    size = max(FEW_UNITS, math.ceil((of_level + of_power) ** 2 * variance))  # fewer than FEW_UNITS give no interval
    while (t_quantile(1 - _LEVEL / 2, size - 1) + of_power) ** 2 * variance > size:
        size += 1
    return size


def pilot_of(tables: StudyTables, column: str) -> Pilot:
    """Estimate rates, length and spread from the analysed sessions of a study, by moments."""
    excess = expected = minutes = 0.0
    people: list[int] = []
    rates = {}
    for condition, rows in grouped(tables.analysed, lambda row: row["condition"]).items():
        counts = np.array(list(by_cluster(rows, column).values()))
        lengths = np.array(list(by_cluster(rows, "minutes").values()))
        counts, lengths = counts[lengths > 0], lengths[lengths > 0]
        if not len(counts):
            continue
        means = counts.sum() / lengths.sum() * lengths
        rates[condition] = float(counts.sum() / lengths.sum() * PER_MINUTES)
        minutes += lengths.sum()
        people += [c for c, length in by_cluster(rows, "minutes").items() if length > 0]
        if len(counts) > 1:
            correction = len(counts) / (len(counts) - 1)
            excess += float((correction * (counts - means) ** 2 - means).sum())
            expected += float((means**2).sum())
    if not people:
        raise TactfulError(f"study {tables.study}: no session is coded: it shows no rate; give --rate-a, --rate-b")
    sessions = sum(row["minutes"] > 0 for row in tables.analysed)
    return Pilot(
        rates=rates,
        minutes=minutes / sessions,
        spread=math.sqrt(max(0.0, excess / expected)) if expected else None,
        units=len({*people}),
        is_within=len({*people}) < len(people),
    )
