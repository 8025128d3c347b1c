"""Fit temperature, vector and isotonic scaling of the probabilities of a choice, and choose among them."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from action_selector.choose.probability_scaling import IsotonicCurve, ProbabilityScaling, ScalingMethod
from norm_core.records.record import record
from scoring.probabilities import Bin

_STEPS = 60  # narrow any bounds to 3e-13 of their width
_GOLDEN = (5**0.5 - 1) / 2


def least_within(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where the loss is least between two bounds, by golden section: it must fall, then rise."""
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return (low + high) / 2


Matrix = NDArray[np.float64]

# The least probability that a loss counts, so that one excluded right option does not decide alone.
LEAST = 1e-3
_SHARPNESS = (0.01, 10.0)  # 1 / temperature
_INNER_FOLDS = 4
_FEWEST_GROUPS = 2
# So many choices pull the temperature of a number of options to the temperature of all.
_PULL = 10.0


@record
class LabelledChoice:
    """The probability of each option, 0 where it was excluded; the right place; its image, video or writer."""

    probabilities: tuple[float, ...]
    right: int
    group: str
    weight: float = 1.0

    @property
    def standing(self) -> int:
        """The number of options that were not excluded."""
        return sum(p > 0 for p in self.probabilities)


@dataclass(frozen=True)
class _Table:
    """Logs of probabilities, -inf where there is no option; rows whose right option stands."""

    logs: Matrix
    right: NDArray[np.intp]
    weights: Matrix
    counts: NDArray[np.intp]


def fit_scaling(method: ScalingMethod, choices: Sequence[LabelledChoice]) -> ProbabilityScaling:
    """Fit one method."""
    if method is ScalingMethod.NONE:
        return ProbabilityScaling()
    if method is ScalingMethod.ISOTONIC:
        pairs = [
            (p, float(place == choice.right), choice.weight)
            for choice in choices
            for place, p in enumerate(choice.probabilities)
            if p > 0
        ]
        return ProbabilityScaling(method=method, curves=(_curve(np.array(pairs)),))
    table = _table([choice for choice in choices if choice.probabilities[choice.right] > 0 and choice.standing > 1])
    sharpness = _sharpness(table, usual=1.0, pull=1.0)
    if method is ScalingMethod.TEMPERATURE:
        return ProbabilityScaling(method=method, temperature=1 / sharpness)
    by_count = {
        int(count): 1 / _sharpness(_rows(table, table.counts == count), usual=sharpness, pull=_PULL)
        for count in np.unique(table.counts)
    }
    return ProbabilityScaling(method=method, temperature=1 / sharpness, temperature_by_count=by_count)


def choose_method(choices: Sequence[LabelledChoice]) -> ScalingMethod:
    """Return the method with the least log loss on groups that are left out in turn; the simplest among equals."""
    names = sorted({choice.group for choice in choices}, key=lambda name: hashlib.sha256(name.encode()).digest())
    if len(names) < _FEWEST_GROUPS:
        return ScalingMethod.TEMPERATURE  # nothing can be left out, and this has the fewest parameters
    folds = {name: place % _INNER_FOLDS for place, name in enumerate(names)}
    losses = {}
    for method in ScalingMethod:
        losses[method] = log_loss(choices, predict_left_out(choices, partial(fit_scaling, method), folds.__getitem__))
    return min(losses, key=lambda method: round(losses[method], 6))


def predict_left_out(
    choices: Sequence[LabelledChoice],
    fit: Callable[[Sequence[LabelledChoice]], ProbabilityScaling],
    fold_by_group: Callable[[str], int | str],
) -> list[tuple[float, ...]]:
    """Scale each choice by what was fitted on the other folds."""
    folds = [fold_by_group(choice.group) for choice in choices]
    predicted: list[tuple[float, ...]] = [()] * len(choices)
    for fold in sorted(set(folds), key=str):
        scaling = fit([choice for choice, of in zip(choices, folds, strict=True) if of != fold])
        for place, choice in enumerate(choices):
            if folds[place] == fold:
                predicted[place] = scaling.apply(choice.probabilities)
    return predicted


def log_loss(choices: Sequence[LabelledChoice], predicted: Sequence[Sequence[float]]) -> float:
    """Compute the weighted mean log loss of the right options; no probability counts below LEAST."""
    right = [p[choice.right] for choice, p in zip(choices, predicted, strict=True)]
    return float(np.average(-np.log(np.maximum(right, LEAST)), weights=[choice.weight for choice in choices]))


def rising_steps(values: Matrix, weights: Matrix) -> Matrix:
    """Return the rising sequence nearest to the values, by pooling adjacent violators."""
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(values, weights, strict=True):
        means.append(float(value))
        masses.append(float(weight))
        counts.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            mass = masses[-2] + masses[-1]
            mean = (means[-2] * masses[-2] + means[-1] * masses[-1]) / mass
            means[-2:], masses[-2:], counts[-2:] = [mean], [mass], [counts[-2] + counts[-1]]
    return np.repeat(means, counts)


def _table(choices: Sequence[LabelledChoice]) -> _Table:
    width = max((len(choice.probabilities) for choice in choices), default=1)
    stated = np.zeros((len(choices), width))
    for row, choice in enumerate(choices):
        stated[row, : len(choice.probabilities)] = choice.probabilities
    return _Table(
        logs=np.log(stated, out=np.full_like(stated, -np.inf), where=stated > 0),
        right=np.array([choice.right for choice in choices], np.intp),
        weights=np.array([choice.weight for choice in choices]),
        counts=np.array([choice.standing for choice in choices], np.intp),
    )


def _rows(table: _Table, of: NDArray[np.bool_]) -> _Table:
    return _Table(table.logs[of], table.right[of], table.weights[of], table.counts[of])


def _sharpness(table: _Table, usual: float, pull: float) -> float:
    """Return the factor of the logs with the least loss, which is convex."""

    def loss(scale: float) -> float:
        return float(table.weights @ _losses(scale * table.logs, table.right)) + pull * (scale - usual) ** 2 / 2

    return least_within(loss, *_SHARPNESS)


def _losses(scores: Matrix, right: NDArray[np.intp]) -> Matrix:
    if not len(scores):
        return np.zeros(0)
    highest = scores.max(axis=1)
    totals = np.log(np.exp(scores - highest[:, None]).sum(axis=1)) + highest
    return np.asarray(totals - scores[np.arange(len(right)), right])


def _curve(pairs: Matrix) -> IsotonicCurve:
    stated, of = np.unique(pairs[:, 0], return_inverse=True)
    weights = np.bincount(of, pairs[:, 2]).astype(np.float64)
    steps = rising_steps(np.bincount(of, pairs[:, 1] * pairs[:, 2]) / weights, weights)
    # Only the ends of each step are needed.
    ends = [place for place in range(len(steps)) if not 0 < place < len(steps) - 1
            or steps[place] != steps[place - 1] or steps[place] != steps[place + 1]]  # fmt: skip
    observed = np.clip(steps[ends], LEAST, 1 - LEAST)
    return IsotonicCurve(stated=tuple(stated[ends].tolist()), observed=tuple(observed.tolist()))


def reliability_table(title: str, bins: Iterable[Bin]) -> Table:
    """Make a table of how often what is stated is right, a row for each tenth of probability."""
    table = Table("stated", "n", "mean", "right", "", title=f"reliability: {title}")
    for part in bins:
        figures = (f"{part.low:.1f} to {part.high:.1f}", str(part.count), f"{part.confidence:.2f}", f"{part.right:.2f}")
        table.add_row(*figures, "█" * round(20 * part.right))
    return table
