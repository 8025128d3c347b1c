"""How well confidence ranks answers: risk by coverage."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.probabilities import Stated
from norm_core.records.record import record

# Confidences closer than this are no evidence for an order.
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
