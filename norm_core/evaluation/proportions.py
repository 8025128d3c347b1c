"""Shares with 95 % intervals."""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Z = NormalDist().inv_cdf(0.975)


def wilson_interval(found: ArrayLike, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 95 % interval of shares of `number` independent trials (Wilson 1927)."""
    count = np.asarray(found, np.float64)
    middle = (count + _Z**2 / 2) / (number + _Z**2)
    reach = _Z / (number + _Z**2) * np.sqrt(count * (number - count) / number + _Z**2 / 4)
    return middle - reach, middle + reach
