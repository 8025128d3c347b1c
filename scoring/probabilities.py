"""Stated probabilities: their calibration error."""

from collections.abc import Sequence

import numpy as np

_BINS = 10
# A stated probability, and whether its statement was correct.
Stated = tuple[float, bool]


def expected_calibration_error(stated: Sequence[Stated]) -> float | None:
    """Compute the mean distance of confidence and accuracy over bins of equal width; None without items."""
    if not stated:
        return None
    values, is_right = np.array(stated, np.float64).T
    bins = np.minimum(_BINS - 1, (values * _BINS).astype(int))
    return float(np.abs(np.bincount(bins, values - is_right)).sum() / len(stated))
