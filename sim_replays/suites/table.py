"""Shares with their uncertainty: items that come from one picture or video stand or fall together."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from norm_core.record import record

_DRAWS = 2000


@record
class Share:
    """A mean of values from 0 to 1 in percent, with its 95 % interval by bootstrap over groups."""

    percent: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.percent:.1f} [{self.low:.1f}, {self.high:.1f}]"


def share(values: Sequence[float], groups: Sequence[str], seed: int = 0) -> Share:
    """The mean of values; groups names the picture or video of each."""
    if not values:
        return Share(percent=float("nan"), low=float("nan"), high=float("nan"), count=0)
    means = resampled(values, groups, seed)
    low, high = np.percentile(means, [2.5, 97.5])
    return Share(percent=100 * float(np.mean(values)), low=100 * float(low), high=100 * float(high), count=len(values))


def resampled(values: Sequence[float], groups: Sequence[str], seed: int = 0) -> NDArray[np.float64]:
    """Means of values over groups drawn again with replacement; the same seed draws the same groups."""
    names = sorted(set(groups))
    place = {name: number for number, name in enumerate(names)}
    sums, counts = np.zeros(len(names)), np.zeros(len(names))
    for value, group in zip(values, groups, strict=True):
        sums[place[group]] += value
        counts[place[group]] += 1
    drawn = np.random.default_rng(seed).integers(0, len(names), (_DRAWS, len(names)))
    means: NDArray[np.float64] = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return means
