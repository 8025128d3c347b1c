"""Average precision: how well scores put what was looked for before the rest."""

import numpy as np
from numpy.typing import NDArray


def average_precision(
    scores: NDArray[np.float64], is_wanted: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> float:
    """Return the mean precision at what was looked for; equal scores share the precision at their last."""
    order = np.argsort(-scores, kind="stable")
    ranked, counts = scores[order], np.ones(len(scores)) if weights is None else weights[order]
    wanted = counts * is_wanted[order]
    last = np.searchsorted(-ranked, -ranked, side="right") - 1
    precision = (np.cumsum(wanted) / np.cumsum(counts))[last]
    return float(wanted @ precision / wanted.sum())
