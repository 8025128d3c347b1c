"""Fit a selector's calibration, and measure it on images or videos that are left out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np

from action_selector.choose.abstain import EQUAL, select_calibrated_set
from action_selector.choose.calibration import COVERAGES
from action_selector.choose.probability_scaling import ProbabilityScaling, ScalingMethod
from calibration.scalers import LabelledChoice, choose_method, fit_scaling, log_loss, predict_left_out
from calibration.selector_labels import AnsweredChoice, fold_of
from norm_core.records.record import record
from scoring.figures import Figure, estimate_share
from scoring.intervals import draw_clusters, percentile_interval
from scoring.probabilities import (
    Bin,
    RiskCoverage,
    Stated,
    adaptive_calibration_error,
    brier_score,
    expected_calibration_error,
    reliability_bins,
    risk_coverage_curve,
)

CHOSEN = "chosen in each fold"
KEPT = 0.8
# Fewer choices with this number of options share the set of all.
FEWEST_OF_COUNT = 30
_DRAWS = 300

Predicted = Sequence[tuple[float, ...]]


@record
class Quality:
    """How far the probabilities of the picks hold, and what abstaining on the least confident fifth gains in points."""

    error: float
    adaptive_error: float
    brier: float
    log_loss: float
    bins: tuple[Bin, ...]
    curve: RiskCoverage
    gain: Figure


@record
class SetCoverage:
    """How often sets of a stated coverage hold the right option, over all and by number of options without a veto."""

    stated: float
    by_count: bool  # one sum for each number of options, else one for all
    held: Figure
    held_of_count: dict[int, Figure]
    size: float
    sure: Figure  # sets of one option


@record
class SelectorMeasured:
    """One run's figures on what was left out."""

    choices: int
    groups: int
    accuracy: Figure
    qualities: dict[str, Quality]
    gain_by_count: Figure  # where the picks with most options without a veto are withheld: needs no labels
    methods: dict[str, int]  # how many folds chose each
    sets: tuple[SetCoverage, ...]


@record
class SelectorFit:
    """What is fitted on all choices."""

    scaling: ProbabilityScaling
    masses: tuple[float, ...]
    masses_by_count: dict[int, tuple[float, ...]]


def fit_selector(choices: Sequence[AnsweredChoice]) -> SelectorFit:
    """Choose a scaling, fit it, and fit the sums of the sets on its probabilities."""
    labelled = [choice.labelled for choice in choices]
    scaling = fit_scaling(choose_method(labelled), labelled)
    scaled = [scaling.apply(choice.probabilities) for choice in labelled]
    sums = {coverage: _masses(labelled, scaled, coverage) for coverage in COVERAGES}
    counts = sorted({count for by_count in sums.values() for count in by_count if count is not None})
    return SelectorFit(
        scaling=scaling,
        masses=tuple(by_count[None] for by_count in sums.values()),
        masses_by_count={
            count: tuple(by_count.get(count, by_count[None]) for by_count in sums.values()) for count in counts
        },
    )


def measure_selector(choices: Sequence[AnsweredChoice], coverages: Sequence[float]) -> SelectorMeasured:
    """Measure every method, and the one that is chosen within each fold's other images."""
    labelled = [choice.labelled for choice in choices]
    groups = [choice.group for choice in labelled]
    fits: dict[str, Callable[[Sequence[LabelledChoice]], ProbabilityScaling]] = {
        method.value: partial(fit_scaling, method) for method in ScalingMethod
    }
    predicted = {name: predict_left_out(labelled, fit, fold_of) for name, fit in fits.items()}
    folds = _fitted_folds(labelled)
    predicted[CHOSEN] = [folds[fold_of(choice.group)].scaling.apply(choice.probabilities) for choice in labelled]
    return SelectorMeasured(
        choices=len(choices),
        groups=len(set(groups)),
        accuracy=estimate_share([float(choice.is_right) for choice in choices], groups),
        qualities={name: _quality(choices, probabilities) for name, probabilities in predicted.items()},
        gain_by_count=_gain([(1 / choice.labelled.standing, choice.is_right) for choice in choices], groups),
        methods=dict(Counter(fold.scaling.method.value for fold in folds.values())),
        sets=tuple(
            _set_coverage(labelled, folds, coverage, by_count) for coverage in coverages for by_count in (False, True)
        ),
    )


def _quality(choices: Sequence[AnsweredChoice], predicted: Predicted) -> Quality:
    labelled = [choice.labelled for choice in choices]
    stated = [(p[choice.picked], choice.is_right) for choice, p in zip(choices, predicted, strict=True)]
    return Quality(
        error=expected_calibration_error(stated) or 0.0,
        adaptive_error=adaptive_calibration_error(stated) or 0.0,
        brier=brier_score(stated) or 0.0,
        log_loss=log_loss(labelled, predicted),
        bins=reliability_bins(stated),
        curve=risk_coverage_curve(stated),
        gain=_gain(stated, [choice.group for choice in labelled]),
    )


def _gain(stated: Sequence[Stated], groups: Sequence[str]) -> Figure:
    """Return in points what abstaining on the least confident fifth adds to the accuracy of the rest."""

    def of(part: Sequence[Stated]) -> float:
        return 100 * (risk_coverage_curve(part).accuracy_at(KEPT) - float(np.mean([right for _, right in part])))

    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    members = list(places.values())
    drawn = [
        of([stated[place] for number in draw for place in members[number]])
        for draw in draw_clusters(len(members), _DRAWS)
    ]
    low, high = percentile_interval(drawn)
    return Figure(value=of(stated), low=low, high=high, count=len(stated), unit="points")


@dataclass(frozen=True)
class _Fold:
    """What is fitted without one fold."""

    scaling: ProbabilityScaling
    known: Sequence[LabelledChoice]
    scaled: Predicted


def _fitted_folds(labelled: Sequence[LabelledChoice]) -> dict[int, _Fold]:
    folds = {}
    for fold in sorted({fold_of(choice.group) for choice in labelled}):
        learning = [choice for choice in labelled if fold_of(choice.group) != fold]
        scaling = fit_scaling(choose_method(learning), learning)
        folds[fold] = _Fold(scaling, learning, [scaling.apply(choice.probabilities) for choice in learning])
    return folds


def _set_coverage(
    labelled: Sequence[LabelledChoice], folds: Mapping[int, _Fold], coverage: float, by_count: bool
) -> SetCoverage:
    masses = {fold: _masses(fitted.known, fitted.scaled, coverage) for fold, fitted in folds.items()}
    sets = []
    for choice in labelled:
        fold = fold_of(choice.group)
        mass = masses[fold].get(choice.standing if by_count else None, masses[fold][None])
        sets.append(select_calibrated_set(_standing(folds[fold].scaling.apply(choice.probabilities)), mass))
    groups = [choice.group for choice in labelled]
    held = [float(choice.right in could_be) for choice, could_be in zip(labelled, sets, strict=True)]
    counts = [choice.standing for choice in labelled]
    return SetCoverage(
        stated=coverage,
        by_count=by_count,
        held=estimate_share(held, groups),
        held_of_count={
            count: estimate_share(
                [is_held for is_held, of in zip(held, counts, strict=True) if of == count],
                [group for group, of in zip(groups, counts, strict=True) if of == count],
            )
            for count in sorted(set(counts))
        },
        size=float(np.mean([len(could_be) for could_be in sets])),
        sure=estimate_share([float(len(could_be) == 1) for could_be in sets], groups),
    )


def _masses(labelled: Sequence[LabelledChoice], scaled: Predicted, coverage: float) -> dict[int | None, float]:
    """Return the sum that sets need, over all (None) and by each number of options with choices enough."""
    of: dict[int | None, list[tuple[Mapping[int, float], int]]] = {None: []}
    for choice, probabilities in zip(labelled, scaled, strict=True):
        case = _standing(probabilities), choice.right
        of[None].append(case)
        of.setdefault(choice.standing, []).append(case)
    return {
        count: coverage_for([case for case, _ in cases], [right for _, right in cases], coverage)
        for count, cases in of.items()
        if count is None or (len(cases) >= FEWEST_OF_COUNT and ceil(coverage * (len(cases) + 1)) <= len(cases))
    }


def coverage_for(right: Sequence[Mapping[int, float]], answers: Sequence[int], wanted: float) -> float:
    """Fit the coverage at which sets hold the right answer in a share `wanted` of cases, by split conformal."""
    if not right:
        raise ValueError("no labelled cases were given to calibrate on")
    needed = []
    for probabilities, answer in zip(right, answers, strict=True):
        if answer not in probabilities:
            needed.append(1.0)
            continue
        above = sum(value for index, value in probabilities.items() if value > probabilities[answer] + EQUAL)
        needed.append(above + 2 * EQUAL)
    needed.sort()
    place = max(1, ceil(wanted * (len(needed) + 1) - EQUAL))
    return min(1.0, needed[place - 1]) if place <= len(needed) else 1.0  # too few cases: all candidates


def _standing(probabilities: Sequence[float]) -> dict[int, float]:
    return {place: p for place, p in enumerate(probabilities) if p > 0}
