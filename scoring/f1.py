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


def f1_score(hits: Counts, targets_and_predictions: Counts, scale: int = 1) -> NDArray[np.float64]:
    """Compute F1 from the hits and the number of targets plus predictions; 0 if that is 0. Scale 100 gives percent."""
    both = np.asarray(targets_and_predictions)
    return np.where(both > 0, scale * 2 * hits / np.maximum(both, 1), 0.0)


def count_confusions(targets: Sequence[int], predictions: Sequence[int | None], class_count: int) -> Matrix:
    """Count by true class and predicted class; the last column counts missing answers."""
    counts = np.zeros((class_count, class_count + 1))
    for target, prediction in zip(targets, predictions, strict=True):
        counts[target, class_count if prediction is None else prediction] += 1
    return counts


def class_f1(counts: Matrix, index: int) -> Figure:
    """Compute F1 of one class."""
    return _estimate_mean_f1(counts, [index])


def macro_f1(counts: Matrix) -> Figure:
    """Compute the mean F1 over all classes; a class without targets and predictions has F1 0, as in scikit-learn."""
    return _estimate_mean_f1(counts, range(len(counts)))


def _estimate_mean_f1(counts: Matrix, classes: Sequence[int]) -> Figure:
    """Estimate the mean F1 of these classes, in percent."""
    total = counts.sum()
    if not total:
        return NO_FIGURE
    cells = counts / total
    value = 0.0
    slope = np.zeros_like(cells)  # of F1 by each cell
    for index in classes:
        hit = cells[index, index]
        both = cells[index, :].sum() + cells[:, index].sum()
        if not both:
            continue
        value += 2 * hit / both / len(classes)
        slope[index, :] -= 2 * hit / both**2 / len(classes)
        slope[:, index] -= 2 * hit / both**2 / len(classes)
        slope[index, index] += 2 / both / len(classes)
    variance = max(0.0, float((cells * slope**2).sum() - (cells * slope).sum() ** 2)) / total
    margin = Z_95 * variance**0.5
    low, high = max(0.0, value - margin), min(1.0, value + margin)
    if margin < NO_WIDTH:
        low, high = np.mean([_compute_border_interval(counts, index) for index in classes], axis=0)
    return Figure(value=100 * value, low=100 * float(low), high=100 * float(high), count=int(total))


def _compute_border_interval(counts: Matrix, index: int) -> tuple[float, float]:
    """Return Wilson's interval of the hits among all cases of a class, as F1: where the delta method has no width."""
    hits = counts[index, index]
    cases = counts[index, :].sum() + counts[:, index].sum() - hits
    low, high = wilson_interval(hits / cases if cases else 0.0, int(cases))
    return 2 * low / (1 + low), 2 * high / (1 + high)
