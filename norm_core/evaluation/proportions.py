"""Shares with 95 % intervals, and how many trials tell a share from a limit."""

import math
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


def trials_to_tell(share: float, limit: float) -> int | None:
    """Return how many trials with this share put `limit` outside Wilson's interval; None if they are equal."""
    return math.ceil(_Z**2 * limit * (1 - limit) / (limit - share) ** 2) if share != limit else None
