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
