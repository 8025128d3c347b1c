"""Fit additive scores: small steps, one fact at a time, each where it explains the labels best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from norm_monitor.assessment.unit_model import NEVER, AdditiveScore, Steps

_BINS = 32
# The share that a class without labels is taken to have.
_RAREST = 1e-4
_PACE, _RIDGE, _FEWEST = 0.08, 5.0, 25
# The share of facts that a round chooses among, so that no fact stands for all that resemble it.
_CHOICE = 0.4

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The facts of units as bins: one column a fact; the last bin holds what is missing."""

    names: tuple[str, ...]
    cuts: tuple[NDArray[np.float64], ...]
    bins: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> "Table":
        """Cut each fact where its values lie."""
        values = np.array([[row.get(name, np.nan) for name in names] for row in rows], float).reshape(-1, len(names))
        cuts = tuple(_cuts(column) for column in values.T)
        return cls(tuple(names), cuts, _binned(values, cuts))

    def like(self, rows: Sequence[Mapping[str, float]]) -> "Table":
        """Return other units, cut at the same values."""
        values = np.array([[row.get(name, np.nan) for name in self.names] for row in rows], float)
        return Table(self.names, self.cuts, _binned(values.reshape(-1, len(self.names)), self.cuts))

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Table":
        """Return a part of the units."""
        return Table(self.names, self.cuts, self.bins[chosen])


def _cuts(column: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.unique(column[~np.isnan(column)])
    if len(values) > _BINS:
        values = np.unique(np.quantile(column[~np.isnan(column)], np.linspace(0, 1, _BINS)))
    return np.round((values[1:] + values[:-1]) / 2, 4) if len(values) > 1 else np.zeros(0)


def _binned(values: NDArray[np.float64], cuts: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    bins = np.zeros(values.shape, np.int64)
    for at, (column, edges) in enumerate(zip(values.T, cuts, strict=True)):
        bins[:, at] = np.where(np.isnan(column), _BINS, np.searchsorted(edges, column, side="right"))
    return bins


@dataclass
class AdditiveFit:
    """Scores of several classes against the rest, as sums over facts."""

    intercepts: Matrix
    added: NDArray[np.float64]  # by class, fact and bin
    # By class, then by the fact that decides alone: the least score of each bin.
    least: tuple[dict[str, NDArray[np.float64]], ...] = ()

    def scores(self, table: Table) -> Matrix:
        """Return the scores of units, one column a class."""
        facts = np.arange(len(table.names))
        scores = np.stack([
            base + added[facts, table.bins].sum(axis=1) for base, added in zip(self.intercepts, self.added, strict=True)
        ], axis=1)  # fmt: skip
        for at, least in enumerate(self.least):
            for name, values in least.items():
                scores[:, at] = np.maximum(scores[:, at], values[table.bins[:, table.names.index(name)]])
        return scores

    def score(self, at: int, table: Table) -> AdditiveScore:
        """Return the scores of one class in the form that is shipped."""
        return AdditiveScore(
            intercept=round(float(self.intercepts[at]), 4),
            facts={
                name: _steps(self.added[at, fact], cuts)
                for fact, (name, cuts) in enumerate(zip(table.names, table.cuts, strict=True))
                if np.any(self.added[at, fact])
            },
            least={
                name: _steps(values, table.cuts[table.names.index(name)])
                for name, values in (self.least[at] if self.least else {}).items()
            },
        )


def _steps(added: NDArray[np.float64], cuts: NDArray[np.float64]) -> Steps:
    """Merge neighbouring bins of one value."""
    values = np.round(added[: len(cuts) + 1], 4)
    changes = np.flatnonzero(np.diff(values))
    return Steps(
        cuts=tuple(map(float, cuts[changes])),
        values=tuple(map(float, values[[*changes, len(values) - 1]])),
        missing=round(float(added[_BINS]), 4),
    )


def fit_additive(
    table: Table,
    labels: NDArray[np.bool_],
    weights: NDArray[np.float64],
    rising: Sequence[Sequence[str]] = (),
    rounds: int = 300,
) -> AdditiveFit:
    """Fit softmax scores of the classes against "none of them"; `labels` has one column a class.

    `rising` names for each class the facts whose score may only rise with their value.
    """
    count, classes = labels.shape
    shares = np.clip(weights @ labels / max(float(weights.sum()), 1.0), _RAREST, 1 - _RAREST)
    rest = max(1 - shares.sum(), _RAREST)
    fit = AdditiveFit(np.log(shares / rest), np.zeros((classes, len(table.names), _BINS + 1)))
    scores = np.tile(fit.intercepts, (count, 1))
    random = np.random.default_rng(0)
    flat = table.bins + np.arange(len(table.names)) * (_BINS + 1)
    only_rising = np.array([
        [name in rising[at] if at < len(rising) else False for name in table.names] for at in range(classes)
    ])  # fmt: skip
    for _ in range(rounds if count else 0):
        odds = np.exp(np.clip(scores, -30, 30))
        likely = odds / (1 + odds.sum(axis=1, keepdims=True))
        chosen = np.flatnonzero(random.random(len(table.names)) < _CHOICE)
        if not chosen.size:
            continue
        for at in range(classes):
            slope = weights * (labels[:, at] - likely[:, at])
            bend = weights * likely[:, at] * (1 - likely[:, at])
            fact, step = _best_step(flat[:, chosen], chosen, slope, bend, weights, only_rising[at], len(table.names))
            if step is None:
                continue
            fit.added[at, fact] += _PACE * step
            scores[:, at] += _PACE * step[table.bins[:, fact]]
    return fit


def find_least_scores(
    table: Table, is_labelled: NDArray[np.bool_], thresholds: Mapping[str, Sequence[float]]
) -> dict[str, NDArray[np.float64]]:
    """Return the least score by each fact that decides alone: the log odds of the label between its thresholds."""
    least = {}
    for name, bounds in thresholds.items():
        column = table.names.index(name)
        bins, cuts = table.bins[:, column], table.cuts[column]
        starts = [int(np.searchsorted(cuts, bound, side="right")) for bound in bounds]
        values = np.full(_BINS + 1, NEVER)
        for start, end in zip(starts, [*starts[1:], _BINS], strict=True):
            labels = is_labelled[(bins >= start) & (bins < end)]
            if len(labels) >= _FEWEST:
                # A little doubt, so that a few labels are not certainty.
                share = (labels.sum() + 1) / (len(labels) + 2)
                values[start:end] = np.log(share / (1 - share))
        values[:_BINS] = np.maximum.accumulate(values[:_BINS])
        if np.any(values > NEVER):
            least[name] = values
    return least


def _best_step(  # noqa: PLR0917
    flat: NDArray[np.int64],
    chosen: NDArray[np.int64],
    slope: NDArray[np.float64],
    bend: NDArray[np.float64],
    weights: NDArray[np.float64],
    only_rising: NDArray[np.bool_],
    facts: int,
) -> tuple[int, NDArray[np.float64] | None]:
    """Return the fact, and what to add by its bins: one value up to a cut, one from there, one where missing."""
    size = facts * (_BINS + 1)
    width = flat.shape[1]
    slopes, bends, counts = (
        np.bincount(flat.ravel(), np.repeat(column, width), size).reshape(facts, _BINS + 1)[chosen]
        for column in (slope, bend, weights)
    )
    below = [np.cumsum(slope[:, :_BINS], axis=1)[:, :-1] for slope in (slopes, bends, counts)]
    whole = [slope[:, :_BINS].sum(axis=1, keepdims=True) for slope in (slopes, bends, counts)]
    above = [total - low for total, low in zip(whole, below, strict=True)]
    left, right = below[0] / (below[1] + _RIDGE), above[0] / (above[1] + _RIDGE)
    missing = slopes[:, _BINS] / (bends[:, _BINS] + _RIDGE)
    gain = below[0] * left + above[0] * right + (slopes[:, _BINS] * missing)[:, None]
    allowed = (below[2] >= _FEWEST) & (above[2] >= _FEWEST) & ~(only_rising[chosen][:, None] & (right < left))
    gain = np.where(allowed, gain, -np.inf)
    place = int(gain.argmax())
    row, cut = divmod(place, gain.shape[1])
    if not np.isfinite(gain[row, cut]) or gain[row, cut] <= 0:
        return 0, None
    step = np.where(np.arange(_BINS + 1) <= cut, left[row, cut], right[row, cut])
    step[_BINS] = missing[row] if counts[row, _BINS] >= _FEWEST else 0.0
    return int(chosen[row]), step
