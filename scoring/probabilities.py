"""Stated probabilities: their calibration error and Brier score."""

from collections.abc import Sequence

import numpy as np

from norm_core.records.record import record

_BINS = 10
# A stated probability, and whether its statement was correct.
Stated = tuple[float, bool]


@record
class Bin:
    """Answers of similar confidence; both values are fractions from 0 to 1."""

    low: float
    high: float
    count: int
    confidence: float
    right: float


def reliability_bins(stated: Sequence[Stated]) -> tuple[Bin, ...]:
    """Return ten bins of equal width, without the empty ones."""
    bins = []
    for index in range(_BINS):
        inside = [(p, is_right) for p, is_right in stated if min(_BINS - 1, int(p * _BINS)) == index]
        if inside:
            bins.append(
                Bin(
                    low=index / _BINS,
                    high=(index + 1) / _BINS,
                    count=len(inside),
                    confidence=sum(p for p, _ in inside) / len(inside),
                    right=sum(is_right for _, is_right in inside) / len(inside),
                )
            )
    return tuple(bins)


def expected_calibration_error(stated: Sequence[Stated]) -> float | None:
    """Compute the mean distance of confidence and accuracy over bins, weighted by count; None without items."""
    if not stated:
        return None
    return sum(part.count * abs(part.confidence - part.right) for part in reliability_bins(stated)) / len(stated)


def adaptive_calibration_error(stated: Sequence[Stated]) -> float | None:
    """Compute the calibration error over bins of equal mass; equal probabilities share a bin. None without items."""
    if not stated:
        return None
    values = np.array([p for p, _ in stated])
    is_right = np.array([is_right for _, is_right in stated], np.float64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1], method="higher"))
    bins = np.searchsorted(edges, values, side="right")
    return float(np.abs(np.bincount(bins, values - is_right)).sum() / len(stated))


def brier_score(stated: Sequence[Stated]) -> float | None:
    """Compute the mean squared distance of probability and outcome; None without items."""
    return float(np.mean([(probability - is_right) ** 2 for probability, is_right in stated])) if stated else None
