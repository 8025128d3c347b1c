"""95 % intervals: by bootstrap over clusters, and Wilson's where nothing varies; and percentiles."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054  # standard errors on each side of a 95 % interval
NO_WIDTH = 1e-9  # below, an interval counts as closed


def draw_clusters(count: int, draws: int, seed: int | np.random.Generator = 0) -> NDArray[np.intp]:
    """Resample as many clusters as there are, with replacement: one row per draw, fixed by the seed or generator."""
    return np.random.default_rng(seed).integers(0, count, (draws, count))


def percentile_interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of the middle 95 % of the values, interpolated."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's score interval of a share of `count` independent cases, which has a width at 0 and 1 too."""
    if not count:
        return 0.0, 1.0
    square = Z_95**2 / count
    middle = (share + square / 2) / (1 + square)
    margin = Z_95 / (1 + square) * (max(0.0, share * (1 - share)) / count + square / (4 * count)) ** 0.5
    return max(0.0, min(share, middle - margin)), min(1.0, max(share, middle + margin))


def cluster_interval(drawn: NDArray[np.float64], share: float, clusters: int) -> tuple[float, float]:
    """Return the interval of a share from its bootstrap; Wilson's over clusters where no draw differs."""
    low, high = percentile_interval(drawn)
    return (low, high) if high - low > NO_WIDTH else wilson_interval(share, clusters)


def interval_of_gain(gains: Sequence[float], groups: Sequence[str]) -> tuple[float, float]:
    """Return the 95 % interval of a mean of gains from -1 to 1, after Agresti and Min (2005), over groups.

    Two groups of average size are added, one without a gain, one half won and half lost: so the interval has a width
    even where all groups are alike.
    """
    sums, sizes = sums_by_group(gains, groups)
    size = float(sizes.mean())
    sums, sizes = np.append(sums, [0.0, size, -size]), np.append(sizes, [size, size, size])
    weights = np.append(np.ones(len(sums) - 3), [1.0, 0.5, 0.5])
    total = float(weights @ sizes)
    mean = float(weights @ sums) / total
    margin = Z_95 * float(weights @ (sums - mean * sizes) ** 2) ** 0.5 / total
    return max(-1.0, mean - margin), min(1.0, mean + margin)


def sums_by_group(gains: Sequence[float], groups: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sum and the number of each group's gains."""
    indices = np.unique(groups, return_inverse=True)[1]
    sums: NDArray[np.float64] = np.bincount(indices, np.asarray(gains, float)).astype(float)
    return sums, np.bincount(indices).astype(float)


def sign_flip_p(gains: Sequence[float], groups: Sequence[str], steps: int = 1) -> float:
    """Compute the two-sided p-value of no difference, exactly: the gains of a group change their sign together.

    `steps` makes whole numbers of the gains. With one gain of 1, 0 or -1 per group this is the exact McNemar test.
    """
    sums = np.rint(steps * sums_by_group(gains, groups)[0]).astype(int)
    distribution = np.ones(1)  # of the sum of all groups, from the lowest
    for size in np.abs(sums[sums != 0]):
        widened = np.zeros(len(distribution) + 2 * size)
        widened[: len(distribution)] += distribution / 2
        widened[2 * size :] += distribution / 2
        distribution = widened
    distances = np.abs(np.arange(len(distribution)) - len(distribution) // 2)
    return min(1.0, float(distribution[distances >= abs(sums.sum())].sum()))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the two upper percentiles used for latencies; nothing for no values."""
    return {f"p{q}": float(np.percentile(values, q)) for q in (50, 90, 99)} if values else {}
