"""95 % intervals: bootstrap over clusters, and of a Poisson rate."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


def draw_clusters(count: int, draws: int, seed: int = 0) -> NDArray[np.intp]:
    """Resample as many clusters as there are, with replacement: one row per draw, fixed by the seed."""
    return np.random.default_rng(seed).integers(0, count, (draws, count))


def percentile_interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of the middle 95 % of the values, interpolated."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the two upper percentiles used for latencies; nothing for no values."""
    return {f"p{q}": float(np.percentile(values, q)) for q in (50, 90, 99)} if values else {}


def poisson_interval(count: int, outside: float = 0.05) -> tuple[float, float]:
    """Return the Poisson means for which a count this low or this high has the probability `outside` / 2."""
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
