"""95 % intervals by bootstrap over clusters, and percentiles."""

from collections.abc import Sequence

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
