"""Figures with uncertainty; items from one picture or video form one group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from scoring.intervals import (
    NO_WIDTH,
    cluster_interval,
    draw_clusters,
    interval_of_gain,
    percentile_interval,
    wilson_interval,
)

_DRAWS = 2000  # samples of a bootstrap
_MAX_CELLS = 500_000  # samples times groups that are drawn at once, so that memory does not grow with the groups
_Z_GRADE = 1.96  # standard errors on each side of a mean grade


@record
class Figure:
    """A mean with its 95 % interval, in percent unless `unit` differs; NaN without items.

    `clusters` is the number of pictures or videos that the interval is over, 0 where it is over cases.
    """

    value: float
    low: float
    high: float
    count: int
    unit: str = "%"
    clusters: int = 0

    def __str__(self) -> str:
        """Format as "value [low, high]", as the value alone where it is exact, or "-" without items."""
        if not self.count:
            return "-"
        digits = 2 if self.unit == "of 5" else 1
        if self.high - self.low < NO_WIDTH:
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


NO_FIGURE = Figure(value=float("nan"), low=float("nan"), high=float("nan"), count=0)

Figures = Mapping[str, Figure]


class FigureError(TactfulError):
    """A case has a value that its figure cannot have."""


def average_figures(draws: Sequence[Figures]) -> Figures:
    """Average the figures of several draws, with the range of the middle 95 %; one draw keeps its interval."""
    if len(draws) == 1:
        return draws[0]
    averages = {}
    for name, first in draws[0].items():
        values = [figures[name].value for figures in draws if figures[name].count]
        low, high = percentile_interval(values) if values else (first.low, first.high)
        mean = float(np.mean(values)) if values else first.value
        averages[name] = replace(first, value=mean, low=low, high=high)
    return averages


def estimate_share(values: Sequence[float], groups: Sequence[str]) -> Figure:
    """Bootstrap the mean of values from 0 to 1; `groups` names the picture or video of each value."""
    if not values:
        return NO_FIGURE
    if not 0 <= min(values) <= max(values) <= 1:
        raise FigureError(f"a share of {min(values):g} to {max(values):g}: score each case from 0 to 1")
    mean = float(np.mean(values))
    clusters = len(set(groups))
    low, high = cluster_interval(bootstrap(values, groups), mean, clusters)
    return Figure(value=100 * mean, low=100 * low, high=100 * high, count=len(values), clusters=clusters)


def estimate_difference(gains: Sequence[float], groups: Sequence[str]) -> Figure:
    """Compute the mean of gains from -1 to 1, in points."""
    if not gains:
        return NO_FIGURE
    low, high = interval_of_gain(gains, groups)
    return Figure(value=100 * float(np.mean(gains)), low=100 * low, high=100 * high, count=len(gains), unit="points")


def estimate_grade(values: Sequence[float]) -> Figure:
    """Compute the mean of grades from 1 to 5, plus or minus 1.96 standard errors; equal grades get Wilson's."""
    if not values:
        return NO_FIGURE
    mean = float(np.mean(values))
    margin = _Z_GRADE * float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    low, high = mean - margin, mean + margin
    if margin < NO_WIDTH:
        low, high = (1 + 4 * bound for bound in wilson_interval((mean - 1) / 4, len(values)))
    return Figure(value=mean, low=max(1.0, low), high=min(5.0, high), count=len(values), unit="of 5")


def bootstrap(values: Sequence[float], groups: Sequence[str], seed: int = 0) -> NDArray[np.float64]:
    """Return the means of values over groups resampled with replacement; a seed fixes the groups."""
    names = sorted(set(groups))
    index_by_name = {name: index for index, name in enumerate(names)}
    sums = np.zeros(len(names))
    counts = np.zeros(len(names))
    for value, group in zip(values, groups, strict=True):
        sums[index_by_name[group]] += value
        counts[index_by_name[group]] += 1
    rng = np.random.default_rng(seed)
    block_draws = max(1, _MAX_CELLS // max(1, len(names)))
    means = []
    for start in range(0, _DRAWS, block_draws):
        drawn = draw_clusters(len(names), min(block_draws, _DRAWS - start), rng)
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(means)
