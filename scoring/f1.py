"""F1 of counts, and F1 with the intervals of Takahashi et al. (2022): a delta method on the confusion matrix.

The package `confidenceinterval` 1.0.5 differs from that paper: its macro variance adds where the paper multiplies, and
its binary variance subtracts squares of cells in place of the square of a sum. This module follows the paper.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scoring.figures import NO_FIGURE, Figure
from scoring.intervals import NO_WIDTH, Z_95, wilson_interval

Matrix = NDArray[np.float64]
Counts = int | NDArray[np.int_] | NDArray[np.float64]


def f1_score(hits: Counts, wanted_and_found: Counts, scale: int = 1) -> NDArray[np.float64]:
    """Compute F1 from the hits and the number of targets plus predictions; 0 if that is 0. Scale 100 gives percent."""
    both = np.asarray(wanted_and_found)
    return np.where(both > 0, scale * 2 * hits / np.maximum(both, 1), 0.0)


def confusion(right: Sequence[int], picked: Sequence[int | None], classes: int) -> Matrix:
    """Count by true class and predicted class; the last column counts missing answers."""
    counts = np.zeros((classes, classes + 1))
    for wanted, answer in zip(right, picked, strict=True):
        counts[wanted, classes if answer is None else answer] += 1
    return counts


def class_f1(counts: Matrix, of: int) -> Figure:
    """Compute F1 of one class."""
    return _figure(counts, [of])


def macro_f1(counts: Matrix) -> Figure:
    """Compute the mean F1 over all classes; a class without targets and predictions has F1 0, as in scikit-learn."""
    return _figure(counts, range(len(counts)))


def _figure(counts: Matrix, classes: Sequence[int]) -> Figure:
    total = counts.sum()
    if not total:
        return NO_FIGURE
    cells = counts / total
    value, slope = 0.0, np.zeros_like(cells)
    for at in classes:
        hit, of_class = cells[at, at], cells[at, :].sum() + cells[:, at].sum()
        if not of_class:
            continue
        value += 2 * hit / of_class / len(classes)
        slope[at, :] -= 2 * hit / of_class**2 / len(classes)
        slope[:, at] -= 2 * hit / of_class**2 / len(classes)
        slope[at, at] += 2 / of_class / len(classes)
    variance = max(0.0, float((cells * slope**2).sum() - (cells * slope).sum() ** 2)) / total
    reach = Z_95 * variance**0.5
    low, high = max(0.0, value - reach), min(1.0, value + reach)
    if reach < NO_WIDTH:
        low, high = np.mean([_border_interval(counts, at) for at in classes], axis=0)
    return Figure(value=100 * value, low=100 * float(low), high=100 * float(high), count=int(total))


def _border_interval(counts: Matrix, at: int) -> tuple[float, float]:
    """Return Wilson's interval of the hits among all cases of a class, as F1: where the delta method has no width."""
    hits = counts[at, at]
    cases = counts[at, :].sum() + counts[:, at].sum() - hits
    low, high = wilson_interval(hits / cases if cases else 0.0, int(cases))
    return 2 * low / (1 + low), 2 * high / (1 + high)
