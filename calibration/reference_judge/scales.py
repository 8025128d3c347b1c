"""Fit a judge's temperature and its weight beside the facts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_monitor.assessment.weighing import MAX_PROBABILITY, MIN_PROBABILITY

_STEPS = 60  # narrow any bounds to 3e-13 of their width
_GOLDEN = (5**0.5 - 1) / 2

# The classes of a unit, as the judge's options name them; None is an ordinary unit.
CLASSES = (Polarity.ERROR, Polarity.COMPETENCE, None)
_TEMPERATURES = (0.1, 10.0)
_MOST_WEIGHT = 10.0  # as fusion.judge_weight takes
_NEAR_ZERO = 1e-9

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


@record
class AnsweredUnit:
    """A unit's label, the judge's probabilities by class, and the log odds of its facts against an ordinary unit."""

    polarity: Polarity | None
    judge: tuple[float, float, float]
    facts: tuple[float, float]


@dataclass(frozen=True)
class _Units:
    judge: Matrix
    facts: Matrix
    labels: Places


def fit_scales(units: Sequence[AnsweredUnit]) -> tuple[float, float]:
    """Return the temperature of the judge, and the weight of its answers, that fit these units best."""
    return _fit(_rows(units))


def _rows(units: Sequence[AnsweredUnit]) -> _Units:
    """Bring the units into arrays; probabilities become log ratios to that of an ordinary unit."""
    logs = np.log(np.clip([unit.judge for unit in units], _NEAR_ZERO, 1))
    return _Units(
        judge=logs[:, :-1] - logs[:, -1:],
        facts=np.array([unit.facts for unit in units]),
        labels=np.array([CLASSES.index(unit.polarity) for unit in units]),
    )


def _fit(rows: _Units) -> tuple[float, float]:
    """Return the temperature of the judge alone, then the weight of its tempered answers beside the facts."""
    coldest, hottest = _TEMPERATURES
    alone = np.zeros_like(rows.facts)
    scale = _best_scale(alone, rows.judge, rows.labels, (1 / hottest, 1 / coldest), usual=1.0)
    weighed = _as_weighed(rows.judge * scale)
    return 1 / scale, _best_scale(rows.facts, weighed, rows.labels, (0.0, _MOST_WEIGHT), usual=0.0)


def _best_scale(base: Matrix, slope: Matrix, labels: Places, bounds: tuple[float, float], usual: float) -> float:
    """Return the factor of the slope with the least loss, which is convex.

    A factor far from the usual one costs something, so that a few units that happen to be right do not decide alone.
    """

    def loss(scale: float) -> float:
        return float(_losses(_probabilities(base + scale * slope), labels).sum()) + (scale - usual) ** 2 / 2

    return least_within(loss, *bounds)


def _as_weighed(ratios: Matrix) -> Matrix:
    """Return log ratios as the fusion weighs them, where no probability is beyond doubt."""
    logs = np.log(np.clip(_probabilities(ratios), MIN_PROBABILITY, MAX_PROBABILITY))
    return np.asarray(logs[:, :-1] - logs[:, -1:])


def _probabilities(ratios: Matrix) -> Matrix:
    """Return the probabilities of all classes from log odds against the last."""
    scores = np.hstack([ratios, np.zeros((len(ratios), 1))])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _losses(probabilities: Matrix, labels: Places) -> Matrix:
    return np.asarray(-np.log(np.maximum(probabilities[np.arange(len(labels)), labels], _NEAR_ZERO)))


def least_within(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where the loss is least between two bounds, by golden section: it must fall, then rise."""
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return (low + high) / 2
