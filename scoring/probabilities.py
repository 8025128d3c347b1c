"""Stated probabilities: their calibration error and Brier score, and how well they rank answers (risk by coverage)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record

BINS = 10

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
    for index in range(BINS):
        inside = [(p, right) for p, right in stated if min(BINS - 1, int(p * BINS)) == index]
        if inside:
            confidence = sum(p for p, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            low, high = index / BINS, (index + 1) / BINS
            bins.append(Bin(low=low, high=high, count=len(inside), confidence=confidence, right=share))
    return tuple(bins)


def expected_calibration_error(stated: Sequence[Stated]) -> float | None:
    """Compute the mean distance of confidence and accuracy over bins, weighted by count; None without items."""
    if not stated:
        return None
    return sum(part.count * abs(part.confidence - part.right) for part in reliability_bins(stated)) / len(stated)


def adaptive_calibration_error(stated: Sequence[Stated], bins: int = BINS) -> float | None:
    """Compute the same over bins of equal mass; equal probabilities share a bin. None without items."""
    if not stated:
        return None
    values = np.array([p for p, _ in stated])
    right = np.array([right for _, right in stated], np.float64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1], method="higher"))
    of = np.searchsorted(edges, values, side="right")
    return float(np.abs(np.bincount(of, values - right)).sum() / len(stated))


def brier_score(stated: Sequence[Stated]) -> float | None:
    """Compute the mean squared distance of probability and outcome; None without items."""
    return float(np.mean([(probability - right) ** 2 for probability, right in stated])) if stated else None


# Confidences closer than this count as equal.
TIE = 1e-3


@record
class RiskCoverage:
    """The share of errors among the most confident answers, by the share that is answered; all are fractions."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]

    @property
    def area(self) -> float:
        """The mean risk over all coverages: lower is better."""
        return float(np.mean(self.risk))

    def accuracy_at(self, coverage: float) -> float:
        """The accuracy where this share is answered."""
        return 1 - self.risk[max(0, int(coverage * len(self.risk)) - 1)]


def risk_coverage_curve(stated: Sequence[Stated]) -> RiskCoverage:
    """Compute the curve. Answers of equal confidence count as their mean, so that no order of ties flatters it."""
    if not stated:
        raise ValueError("no answers were given to rank")
    confidence = np.round(np.array([p for p, _ in stated]) / TIE)
    wrong = np.array([not right for _, right in stated], np.float64)
    expected = _mean_by_tie(confidence, wrong)
    order = np.argsort(-confidence, kind="stable")
    counts = np.arange(1, len(stated) + 1)
    risk = np.cumsum(expected[order]) / counts
    return RiskCoverage(coverage=tuple((counts / len(stated)).tolist()), risk=tuple(risk.tolist()))


def _mean_by_tie(confidence: NDArray[np.float64], wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    _, of = np.unique(confidence, return_inverse=True)
    return np.asarray((np.bincount(of, wrong) / np.bincount(of))[of])
