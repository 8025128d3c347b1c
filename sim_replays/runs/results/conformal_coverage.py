"""Measure how often the calibrated set holds the right option, by coverage, from raw answers."""

from collections.abc import Mapping, Sequence

from action_selector.choose.abstain import calibrated_set, coverage_for
from norm_core.evaluation.figures import Figure, share
from norm_core.records.record import record
from sim_replays.runs.results.run_folder import Run, RunError
from sim_replays.suites.fitting import FOLDS, fold_of


@record
class ConformalCase:
    """One question: the probability of each remaining option, the right one, and its image or video."""

    probabilities: Mapping[int, float]
    right: int
    group: str


@record
class ConformalCoverage:
    """The result for one coverage. `wanted` is None where coverage was set rather than fitted on all cases.

    held: the set held the right option; sure: the set held one option; right: accuracy of those; size: mean set size.
    """

    wanted: float | None
    coverage: float
    held: Figure
    sure: Figure
    right: Figure
    size: float


def cases_of(run: Run) -> list[ConformalCase]:
    """Collect the questions with one right option that were answered with probabilities."""
    cases = []
    targets = {target.key: target for target in run.key.targets}
    for query_id, timed in run.told.items():
        target = targets.get((run.key.items[query_id], timed.answer.task))
        if target is None or target.several or not timed.answer.probabilities:
            continue
        order = run.key.orders[query_id]
        standing = {order[place]: p for place, p in enumerate(timed.answer.probabilities) if p > 0}
        cases.append(ConformalCase(probabilities=standing, right=target.right[0], group=target.group))
    if not cases:
        raise RunError(f"{run.folder}: holds no answers with probabilities to calibrate on")
    return cases


def as_set(cases: Sequence[ConformalCase], coverage: float) -> ConformalCoverage:
    """Measure a coverage that was chosen without labels."""
    sets = [calibrated_set(case.probabilities, coverage) for case in cases]
    return _measured(cases, sets, None, coverage)


def cross_validated(cases: Sequence[ConformalCase], wanted: float) -> ConformalCoverage:
    """Fit and measure coverage in cross-validation, with folds by image or video."""
    folds = [fold_of(case.group) for case in cases]
    sets: list[tuple[int, ...]] = [()] * len(cases)
    for fold in range(FOLDS):
        known = [case for case, of in zip(cases, folds, strict=True) if of != fold]
        if not known:
            raise RunError("the answers are of too few pictures or videos to calibrate on some and measure on others")
        coverage = _fitted(known, wanted)
        for place, case in enumerate(cases):
            if folds[place] == fold:
                sets[place] = calibrated_set(case.probabilities, coverage)
    return _measured(cases, sets, wanted, _fitted(cases, wanted))


def _fitted(cases: Sequence[ConformalCase], wanted: float) -> float:
    return coverage_for([case.probabilities for case in cases], [case.right for case in cases], wanted)


def _measured(
    cases: Sequence[ConformalCase], sets: Sequence[tuple[int, ...]], wanted: float | None, coverage: float
) -> ConformalCoverage:
    groups = [case.group for case in cases]
    sure = [place for place, could_be in enumerate(sets) if len(could_be) == 1]
    return ConformalCoverage(
        wanted=wanted,
        coverage=coverage,
        held=share([float(case.right in could_be) for case, could_be in zip(cases, sets, strict=True)], groups),
        sure=share([float(len(could_be) == 1) for could_be in sets], groups),
        right=share([float(cases[at].right in sets[at]) for at in sure], [groups[at] for at in sure]),
        size=sum(map(len, sets)) / len(sets),
    )
