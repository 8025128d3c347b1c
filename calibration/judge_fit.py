"""Fit a judge's temperature and its weight beside the facts, and measure what it adds on what was left out."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_monitor.assessment.weighing import MAX_PROBABILITY, MIN_PROBABILITY
from scoring.intervals import draw_clusters, percentile_interval
from scoring.probabilities import (
    brier_score,
    expected_calibration_error,
)
from scoring.ranking import ranking_measures

_STEPS = 60  # narrow any bounds to 3e-13 of their width
_GOLDEN = (5**0.5 - 1) / 2

# The classes of a unit, as the judge's options name them; None is an ordinary unit.
CLASSES = (Polarity.ERROR, Polarity.COMPETENCE, None)
FEWEST_LABELLED = 20
FEWEST_ENCOUNTERS = 3
TEMPERED = "temperature"
_FOLDS = 5  # where one writer wrote all
_DRAWS = 1_000
_TEMPERATURES = (0.1, 10.0)
_MOST_WEIGHT = 10.0  # as fusion.judge_weight takes
_NEAR_ZERO = 1e-9
_COPIES = 4

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


class LabelError(TactfulError, ValueError):
    """The labels do not suffice for a fit; the message says what is missing."""


@record
class AnsweredUnit:
    """A unit's label, the judge's probabilities by class, and the log odds of its facts against an ordinary unit."""

    encounter: str
    writer: str
    polarity: Polarity | None
    judge: tuple[float, float, float]
    facts: tuple[float, float]


@record
class ReaderScore:
    """A reader's log loss and average precision of errors, or a difference of two, with 95 % intervals."""

    log_loss: float
    log_loss_interval: tuple[float, float]
    average_precision: float
    average_precision_interval: tuple[float, float]


@record
class JudgeQuality:
    """How far the judge's probability of an error holds alone; units count as in the whole material."""

    error: float
    brier: float
    log_loss: float  # of all classes


@record
class JudgeFit:
    """The temperature and the weight fitted on all units, and the readers as measured on what was left out."""

    temperature: float
    weight: float
    units: int
    left_out: str  # writers or encounters
    readers: dict[str, ReaderScore]  # facts, judge, both
    added: ReaderScore  # both less facts
    qualities: dict[str, JudgeQuality]  # of the judge alone, and of a control


@dataclass(frozen=True)
class _Units:
    judge: Matrix
    facts: Matrix
    labels: Places
    weights: Matrix


def fit_judge(units: Sequence[AnsweredUnit], in_all: dict[Polarity | None, int]) -> JudgeFit:
    """Fit on answered units and measure; raise LabelError if they do not suffice.

    `in_all` counts the units by class in the whole material: a sample counts as often as its class stands there.
    """
    _check(units)
    rows = _rows(units, in_all)
    left_out, groups = _groups(units)
    predicted = {name: np.zeros((len(units), len(CLASSES))) for name in ("facts", "judge", "both")}
    for group in np.unique(groups):
        within, out = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        temperature, weight = _fit(rows, within)
        tempered = rows.judge[out] / temperature
        predicted["facts"][out] = _probabilities(rows.facts[out])
        predicted["judge"][out] = _probabilities(tempered)
        predicted["both"][out] = _probabilities(rows.facts[out] + weight * _as_weighed(tempered))
    temperature, weight = _fit(rows, np.arange(len(units)))
    readers, added = _measure(predicted, rows, np.unique([unit.encounter for unit in units], return_inverse=True)[1])
    return JudgeFit(
        temperature=round(temperature, 3),
        weight=round(weight, 3),
        units=len(units),
        left_out=left_out,
        readers=readers,
        added=added,
        qualities=_qualities(units, rows, predicted["judge"], groups),
    )


def fit_scales(units: Sequence[AnsweredUnit]) -> tuple[float, float]:
    """Return the temperature of the judge, and the weight of its answers, that fit these units best."""
    return _fit(_rows(units, Counter(unit.polarity for unit in units)), np.arange(len(units)))


def _check(units: Sequence[AnsweredUnit]) -> None:
    labelled = sum(unit.polarity is not None for unit in units)
    if labelled < FEWEST_LABELLED:
        raise LabelError(
            f"{labelled} labelled units have an answer, and {FEWEST_LABELLED} are needed: {FEWEST_LABELLED - labelled} "
            "are missing; label more encounters, or raise --limit"
        )
    counts = {"error": sum(unit.polarity is Polarity.ERROR for unit in units)}
    counts["ordinary unit"] = len(units) - labelled
    if missing := [name for name, count in counts.items() if not count]:
        raise LabelError(
            f"no {' and no '.join(missing)} is among the {len(units)} answered units; label encounters with errors "
            "and with ordinary talk"
        )
    encounters = len({(unit.writer, unit.encounter) for unit in units})
    if encounters < FEWEST_ENCOUNTERS:
        raise LabelError(
            f"the answered units are of {encounters} encounters, and {FEWEST_ENCOUNTERS} are needed to leave one out; "
            "label more encounters, or raise --limit"
        )


def _rows(units: Sequence[AnsweredUnit], in_all: dict[Polarity | None, int]) -> _Units:
    """Bring the units into arrays; probabilities become log ratios to that of an ordinary unit."""
    labels = np.array([CLASSES.index(unit.polarity) for unit in units])
    shares = {kind: in_all[kind] / max(int((labels == at).sum()), 1) for at, kind in enumerate(CLASSES)}
    logs = np.log(np.clip([unit.judge for unit in units], _NEAR_ZERO, 1))
    return _Units(
        judge=logs[:, :-1] - logs[:, -1:],
        facts=np.array([unit.facts for unit in units]),
        labels=labels,
        weights=np.array([shares[unit.polarity] for unit in units]),
    )


def _groups(units: Sequence[AnsweredUnit]) -> tuple[str, Places]:
    """Return what is left out at a time: a writer, or a fold of encounters where there is one writer."""
    writers, of_writer = np.unique([unit.writer for unit in units], return_inverse=True)
    if len(writers) > 1:
        return "writers", of_writer
    names, of_encounter = np.unique([unit.encounter for unit in units], return_inverse=True)
    return "encounters", of_encounter % min(_FOLDS, len(names))


def _fit(rows: _Units, within: Places) -> tuple[float, float]:
    """Return the temperature of the judge alone, then the weight of its tempered answers beside the facts."""
    judge, facts = rows.judge[within], rows.facts[within]
    labels, weights = rows.labels[within], rows.weights[within]
    coldest, hottest = _TEMPERATURES
    weights = weights * len(weights) / weights.sum()
    scale = _best_scale(np.zeros_like(facts), judge, labels, weights, (1 / hottest, 1 / coldest), usual=1.0)
    weighed = _as_weighed(judge * scale)
    return 1 / scale, _best_scale(facts, weighed, labels, weights, (0.0, _MOST_WEIGHT), usual=0.0)


def _best_scale(  # noqa: PLR0917
    base: Matrix, slope: Matrix, labels: Places, weights: Matrix, bounds: tuple[float, float], usual: float
) -> float:
    """Return the factor of the slope with the least loss, which is convex.

    A factor far from the usual one costs something, so that a few units that happen to be right do not decide alone.
    """

    def loss(scale: float) -> float:
        return float(weights @ _losses(_probabilities(base + scale * slope), labels)) + (scale - usual) ** 2 / 2

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


def _measure(
    predicted: dict[str, Matrix], rows: _Units, of_encounter: Places
) -> tuple[dict[str, ReaderScore], ReaderScore]:
    """Return each reader's measures and what both have over the facts, with intervals over encounters."""
    inside = [np.flatnonzero(of_encounter == number) for number in range(of_encounter.max() + 1)]
    draws = [np.concatenate([inside[number] for number in drawn]) for drawn in draw_clusters(len(inside), _DRAWS)]
    draws = [at for at in draws if (rows.labels[at] == 0).any()]  # without an error there is no precision of errors
    every = np.arange(len(rows.labels))
    measures = {
        name: np.array([_values(probabilities, rows, at) for at in (every, *draws)])
        for name, probabilities in predicted.items()
    }
    readers = {name: _measured(values) for name, values in measures.items()}
    return readers, _measured(measures["both"] - measures["facts"])


def _values(probabilities: Matrix, rows: _Units, at: Places) -> tuple[float, float]:
    labels, weights = rows.labels[at], rows.weights[at]
    loss = float(weights @ _losses(probabilities[at], labels) / weights.sum())
    _, precisions = ranking_measures(probabilities[at, 0], labels == 0, weights[None])
    return loss, float(precisions[0])


def _measured(values: Matrix) -> ReaderScore:
    (loss, precision), drawn = values[0], values[1:]
    return ReaderScore(
        log_loss=float(loss),
        log_loss_interval=percentile_interval(drawn[:, 0]),
        average_precision=float(precision),
        average_precision_interval=percentile_interval(drawn[:, 1]),
    )


def _qualities(units: Sequence[AnsweredUnit], rows: _Units, alone: Matrix, groups: Places) -> dict[str, JudgeQuality]:
    """Measure the judge alone, before its temperature and with it, and a control, on what was left out."""
    predicted = {
        "none": np.array([unit.judge for unit in units]),
        TEMPERED: alone,
        "control: base rate": np.array([_base_rate(rows, groups != group) for group in groups]),
    }
    return {name: _quality(rows, np.clip(probabilities, _NEAR_ZERO, 1)) for name, probabilities in predicted.items()}


def _base_rate(rows: _Units, within: NDArray[np.bool_]) -> Matrix:
    rates = np.bincount(rows.labels[within], rows.weights[within], minlength=len(CLASSES))
    return np.asarray(rates / rates.sum())


def _quality(rows: _Units, predicted: Matrix) -> JudgeQuality:
    count = _COPIES * len(predicted)
    share = np.cumsum(rows.weights) / rows.weights.sum()
    # A unit stands as often as its weight demands, which the measures of unweighted statements need.
    places = np.minimum(np.searchsorted(share, (np.arange(count) + 0.5) / count), len(predicted) - 1)
    stated = [(float(predicted[place, 0]), bool(rows.labels[place] == 0)) for place in places]
    return JudgeQuality(
        error=expected_calibration_error(stated) or 0.0,
        brier=brier_score(stated) or 0.0,
        log_loss=float(np.average(_losses(predicted, rows.labels), weights=rows.weights)),
    )


def least_within(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where the loss is least between two bounds, by golden section: it must fall, then rise."""
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return (low + high) / 2
