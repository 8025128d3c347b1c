"""Measures of ranking, for many weightings of the items at once, such as those of a bootstrap."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_quiet = np.errstate(divide="ignore", invalid="ignore")  # 0 / 0 is NaN: undefined


@_quiet
def ranking_measures(scores: Array, is_wanted: NDArray[np.bool_], weights: Array) -> tuple[Array, Array]:
    """Return the area under the ROC curve and the average precision for each row of weights; NaN if undefined.

    Equal scores count half in the area; in the precision they share that at their last.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(scores[order]) > 0))
    counts = weights[:, order]
    wanted, others = (np.add.reduceat(counts * kind[order], starts, axis=1) for kind in (is_wanted, ~is_wanted))
    below = np.cumsum(others, axis=1) - others / 2
    areas = (wanted * below).sum(axis=1) / (wanted.sum(axis=1) * others.sum(axis=1))
    above, every = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1] for part in (wanted, wanted + others))
    precision = np.where(every > 0, above / every, 0.0)
    return areas, (wanted * precision).sum(axis=1) / wanted.sum(axis=1)


@_quiet
def rank_correlations(ranked: Array, other: Array, weights: Array) -> Array:
    """Return Spearman's correlation for each row of weights, by the ranks of all items; NaN if nothing varies."""
    total = weights.sum(axis=1)
    ranks = [_compute_mid_ranks(values) for values in (ranked, other)]
    a, b = (values - (weights @ values / total)[:, None] for values in ranks)  # deviations from the mean rank
    variance_a, variance_b, covariance = ((weights * product).sum(axis=1) for product in (a**2, b**2, a * b))
    return np.asarray(covariance / np.sqrt(variance_a * variance_b))


def _compute_mid_ranks(values: Array) -> Array:
    """Return the ranks, where equal values share the middle of theirs."""
    _, indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[indices])
