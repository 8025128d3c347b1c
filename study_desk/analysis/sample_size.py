"""Simulate how many participants a study of two conditions needs to find a difference between rates of events."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.intervals import wilson_interval
from norm_core.evaluation.quantiles import t_quantile
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from study_desk.analysis.study_tables import PER_MINUTES, StudyTables, by_cluster, grouped

_BLOCK = 100  # simulated studies at a time
_FEWEST = 2  # participants in a condition
_LEVEL = 0.05  # of the two-sided test


class PlanError(TactfulError, ValueError):
    """No sample size can be computed; the message gives the remedy."""


@record
class PlanAssumptions:
    """What is assumed: rates per ten minutes, one session of `minutes` per participant, and their differences.

    `spread` is the coefficient of variation of participants' own rates within a condition.
    """

    rate_a: float
    rate_b: float
    minutes: float
    spread: float

    def __post_init__(self) -> None:
        """Raises PlanError for values from which nothing can be planned."""
        values = {"rate of a": self.rate_a, "rate of b": self.rate_b, "length of a session": self.minutes}
        for name, value in values.items():
            if not (math.isfinite(value) and value > 0):
                raise PlanError(f"the {name} is {value:g}: give one above 0")
        if self.rate_a == self.rate_b:
            raise PlanError("both rates are equal: give the smallest difference that the study is to find")
        if not (math.isfinite(self.spread) and self.spread >= 0):
            raise PlanError(f"the spread is {self.spread:g}: give 0 or more")

    @property
    def means(self) -> tuple[float, float]:
        """The expected events of a session in each condition."""
        return self.rate_a * self.minutes / PER_MINUTES, self.rate_b * self.minutes / PER_MINUTES


@record
class SampleSize:
    """Participants per condition for a power, their Monte-Carlo interval, and those by the closed formula.

    `participants` is None where `most` are too few. `high` is None where the interval exceeds them.
    """

    power: float
    participants: int | None
    low: int | None
    high: int | None
    found_power: float
    formula: int


@record
class Pilot:
    """What a piloted study tells: rates by condition, mean minutes of a session, and the spread.

    `spread` is None if no condition has two units to compare.
    """

    rates: dict[str, float]
    minutes: float
    spread: float | None
    units: int  # participants, or groups who share sessions
    is_within: bool  # somebody took part in several conditions


def formula_size(plan: PlanAssumptions, power: float) -> int:
    """Compute participants per condition for two negative binomial rates (Zhu and Lakkis 2014, variance 2)."""
    a, b = plan.means
    normal = NormalDist()
    reach = normal.inv_cdf(1 - _LEVEL / 2) + normal.inv_cdf(power)
    variance = 1 / a + 1 / b + 2 * plan.spread**2
    return math.ceil(reach**2 * variance / math.log(b / a) ** 2)


def simulate_sizes(
    plan: PlanAssumptions,
    powers: Sequence[float],
    *,
    simulations: int,
    seed: int,
    most: int,
    progress: Callable[[Sequence[int]], Iterable[int]] = lambda blocks: blocks,
) -> tuple[SampleSize, ...]:
    """Simulate studies of every size up to `most`, and find the least size with each power.

    Each simulated study is tested as analysis.R and analysis.py test it: by a quasi-Poisson model.
    """
    sizes = np.arange(_FEWEST, most + 1)
    critical = np.array([t_quantile(1 - _LEVEL / 2, 2 * n - 2) for n in range(_FEWEST, most + 1)])
    found = np.zeros(len(sizes))
    rng = np.random.default_rng(seed)
    for first in progress(range(0, simulations, _BLOCK)):
        number = min(_BLOCK, simulations - first)
        a, b = (_arm(rng, mean, plan.spread, (number, most))[:, :, _FEWEST - 1 :] for mean in plan.means)
        found += _is_found(a, b, sizes, critical).sum(axis=0)
    shares = found / simulations
    low, high = np.transpose([wilson_interval(share, simulations) for share in shares])
    return tuple(_size(power, sizes, shares, low, high, formula_size(plan, power)) for power in powers)


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
        raise PlanError(f"study {tables.study}: no session is coded, so it tells no rate: give --rate-a and --rate-b")
    sessions = sum(row["minutes"] > 0 for row in tables.analysed)
    return Pilot(
        rates=rates,
        minutes=minutes / sessions,
        spread=math.sqrt(max(0.0, excess / expected)) if expected else None,
        units=len({*people}),
        is_within=len({*people}) < len(people),
    )


def _arm(rng: np.random.Generator, mean: float, spread: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Draw participants' counts; return their sums and sums of squares after each participant."""
    own = mean * rng.gamma(spread**-2, spread**2, shape) if spread else np.full(shape, mean)
    counts = rng.poisson(own).astype(np.float64)
    return np.stack([counts.cumsum(axis=1), (counts**2).cumsum(axis=1)])


def _is_found(
    a: NDArray[np.float64], b: NDArray[np.float64], sizes: NDArray[np.int_], critical: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether the quasi-Poisson model tells the conditions apart. Without an event in one of them it does not."""
    pearson = sum((arm[1] - arm[0] ** 2 / sizes) / np.maximum(arm[0], 1) * sizes for arm in (a, b))
    dispersion = np.asarray(pearson) / (2 * sizes - 2)
    some = (a[0] > 0) & (b[0] > 0)
    sum_a, sum_b = np.where(some, a[0], 1), np.where(some, b[0], 1)
    error = np.sqrt(dispersion * (1 / sum_a + 1 / sum_b))
    return np.asarray(some & (np.abs(np.log(sum_b / sum_a)) > critical * error))


def _size(  # noqa: PLR0917
    power: float,
    sizes: NDArray[np.int_],
    share: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    formula: int,
) -> SampleSize:
    def least(curve: NDArray[np.float64]) -> int | None:
        reached = np.flatnonzero(curve >= power)
        return int(sizes[reached[0]]) if len(reached) else None

    participants = least(share)
    return SampleSize(
        power=power,
        participants=participants,
        low=least(high),
        high=least(low),
        found_power=float(share[participants - _FEWEST if participants else -1]),
        formula=formula,
    )
