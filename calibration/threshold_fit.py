"""Fit a site's thresholds to a target: some sessions shape a path of thresholds, the others test how far it may go.

The path runs from flagging nothing to flagging nearly everything. It is fixed before it is tested, and the test ends at
the first thresholds whose bound misses the target, so that one level of confidence covers all of them (fixed sequence
testing: Angelopoulos et al., Learn then Test, 2021). The bound is the exact one of a Poisson count, or of a share,
widened by how much more sessions differ than chance alone would have it.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import field
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from calibration.session_flags import Bars, Counts, LabelledSession, count_session, total
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.wording import count_of
from scoring.intervals import draw_clusters, percentile_interval
from scoring.quantiles import poisson_interval, share_bound, t_quantile

CONFIDENCE = 0.95
# With fewer, nothing is fitted; an attribute with fewer labelled errors shares the threshold of the rest.
FEWEST_SESSIONS, FEWEST_ERRORS, FEWEST_OF_ATTRIBUTE = 8, 20, 10
LEAST = 0.05
_STEP, _DRAWS, _MOST_TIMES = 0.02, 1000, 1000
_PRICES = np.geomspace(100, 0.01, 60)
# How far below the target an estimate lies where more sessions are likely to bring its bound below it, too.
_LIKELY = 0.75


@record
class ThresholdTarget:
    """What thresholds are to keep within: false errors an hour, or the share of false ones among flagged errors."""

    false_errors_per_hour: float | None = None
    precision: float | None = None

    @property
    def limit(self) -> float:
        """The most false errors, an hour or of one flag."""
        return 1 - self.precision if self.precision is not None else float(self.false_errors_per_hour or 0)

    def __str__(self) -> str:
        """The target in words."""
        if self.precision is not None:
            return f"precision of errors at least {self.precision:g}"
        return f"at most {self.false_errors_per_hour:g} false errors an hour"


@record
class MeasuredBars:
    """What thresholds do in sessions: the false ones with their upper bound, and the recall with its interval."""

    bars: Bars
    false: int
    right: int
    labelled: int
    hours: float
    estimate: float  # of what the target limits
    bound: float
    recall: float
    recall_interval: tuple[float, float]


@record
class MoreLabels:
    """What would narrow the bound to the target at laxer thresholds, if the estimate holds."""

    sessions: int
    hours: float
    errors: int
    recall: float  # of the laxer thresholds


@record
class ThresholdFit:
    """Thresholds, what they do in the sessions that tested them, and what was before."""

    target: ThresholdTarget
    own: tuple[Attribute, ...]  # the attributes with a threshold of their own
    learning: tuple[str, ...]
    testing: tuple[str, ...]
    chosen: MeasuredBars | None  # None where the sessions do not bear out any
    before: MeasuredBars
    path: tuple[MeasuredBars, ...] = field(repr=False)
    more: MoreLabels | None


def fit_thresholds(
    sessions: Sequence[LabelledSession], target: ThresholdTarget, before: Bars, seed: int = 0
) -> ThresholdFit:
    """Learn a path on a third of the sessions, test it on the others, and return the last thresholds that hold."""
    _check_enough(sessions)
    ordered = sorted(sessions, key=lambda session: session.name)
    places = np.random.default_rng(seed).permutation(len(ordered))
    learning = [ordered[place] for place in places[: len(ordered) // 3]]
    marked = [attribute for session in learning for error in session.errors for attribute in error.attributes]
    own = tuple(attribute for attribute in Attribute if marked.count(attribute) >= FEWEST_OF_ATTRIBUTE)
    if not own and target.precision is None:
        learning = []  # a single threshold needs no shape: all sessions test it
    names = {session.name for session in learning}
    testing = [session for session in ordered if session.name not in names]
    path = [measure(testing, bars, target) for bars in _path(learning, own)]
    start = (
        _start(learning, [point.bars for point in path], target, len(testing)) if target.precision is not None else 0
    )
    chosen = None
    for point in path[start:]:
        if point.bound > target.limit:
            break
        if point.right:
            chosen = point
    return ThresholdFit(
        target=target,
        own=own,
        learning=tuple(sorted(names)),
        testing=tuple(session.name for session in testing),
        chosen=chosen,
        before=measure(testing, before, target),
        path=tuple(path),
        more=_more(path, chosen, target, testing, len(sessions) / len(testing)),
    )


def measure(sessions: Sequence[LabelledSession], bars: Bars, target: ThresholdTarget) -> MeasuredBars:
    """Count what thresholds flag in sessions, with the bound of what the target limits."""
    counts = [count_session(session, bars) for session in sessions]
    false, right, labelled, hours = total(counts)
    estimate, bound = estimate_and_bound(counts, target)
    figures = np.array([(count.right, count.labelled) for count in counts], float)
    drawn = figures[draw_clusters(len(figures), _DRAWS)].sum(axis=1)
    return MeasuredBars(
        bars=bars,
        false=false,
        right=right,
        labelled=labelled,
        hours=hours,
        estimate=estimate,
        bound=bound,
        recall=right / labelled if labelled else 0.0,
        recall_interval=percentile_interval(drawn[:, 0] / np.maximum(drawn[:, 1], 1)),
    )


def _check_enough(sessions: Sequence[LabelledSession]) -> None:
    if (lacking := FEWEST_SESSIONS - len(sessions)) > 0:
        raise TactfulError(
            f"{count_of(len(sessions), 'labelled session')}, and {FEWEST_SESSIONS} are needed: code {lacking} more"
        )
    errors = sum(len(session.errors) for session in sessions)
    if not errors:
        raise TactfulError(
            "no error is labelled in these sessions, so nothing says what a threshold costs; code sessions with errors"
        )
    if errors < FEWEST_ERRORS:
        raise TactfulError(
            f"{count_of(errors, 'labelled error')}, and {FEWEST_ERRORS} are needed: {FEWEST_ERRORS - errors} are "
            "missing; code more sessions"
        )
    if empty := [session.name for session in sessions if session.hours <= 0]:
        raise TactfulError(f"{', '.join(empty)}: the bag has no length; leave it out")
    if not any(session.raised for session in sessions):
        raise TactfulError("the monitor finds no error at any probability in these bags; check them with doctor")


def estimate_and_bound(counts: Sequence[Counts], target: ThresholdTarget) -> tuple[float, float]:
    """Return the estimate of what the target limits, and its upper bound."""
    false, right, _, hours = total(counts)
    if target.precision is None:
        shares = np.array([count.hours for count in counts]) / hours
        return false / hours, _rate_bound(false, hours, _dispersion(counts, false * shares))
    flags = false + right
    if not flags:
        return 0.0, 1.0
    shares = np.array([count.false + count.right for count in counts]) / flags
    wider = _dispersion(counts, false * shares, 1 - false / flags)
    return false / flags, share_bound(false / wider, flags / wider, CONFIDENCE)


def _rate_bound(false: float, hours: float, wider: float) -> float:
    deflated = math.ceil(false / wider - 1e-9)
    return wider * poisson_interval(deflated, 2 * CONFIDENCE - 1)[1] / hours


def _dispersion(counts: Sequence[Counts], expected: NDArray[np.float64], share_right: float = 1.0) -> float:
    """Return by how much the false flags of sessions vary more than by chance (Pearson), 1 at least.

    It is itself estimated from few sessions, so it grows as Student's t exceeds the normal quantile.
    """
    false_counts = np.array([count.false for count in counts], float)
    some = expected > 0
    if share_right <= 0 or some.sum() < 2:
        return 1.0
    squares = (false_counts[some] - expected[some]) ** 2 / (expected[some] * share_right)
    freedom = int(some.sum()) - 1
    unsure = (t_quantile(CONFIDENCE, freedom) / NormalDist().inv_cdf(CONFIDENCE)) ** 2
    return max(1.0, unsure * float(squares.sum()) / freedom)


def _path(learning: Sequence[LabelledSession], own: Collection[Attribute]) -> list[Bars]:
    """Return thresholds from the strictest to the laxest: at each price of a false flag, the best of each attribute."""
    groups: list[Attribute | None] = [*own, None]
    ones, least = np.ones(len(groups)), np.full(len(groups), LEAST)
    corners = [ones]
    if own:
        grid = np.round(np.arange(1.0, LEAST - 1e-9, -0.01), 2)
        gains = [_gains(learning, group, own, grid) for group in groups]
        for price in _PRICES:
            best = np.array([grid[int(np.argmax(right - price * false))] for right, false in gains])
            corners.append(np.minimum(best, corners[-1]))
    corners.append(least)
    thresholds: dict[tuple[float, ...], None] = {}
    for strict, lax in pairwise(corners):
        steps = max(1, math.ceil(float((strict - lax).max()) / _STEP - 1e-9))
        for step in range(steps + 1):
            point = strict + (lax - strict) * step / steps
            thresholds[tuple(float(value) for value in np.round(point, 3))] = None
    return [Bars(by_attribute=dict(zip(own, levels, strict=False)), rest=levels[-1]) for levels in thresholds]


def _gains(
    learning: Sequence[LabelledSession], group: Attribute | None, own: Collection[Attribute], grid: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many flags of a group are right and how many false at each threshold."""
    right, false = np.zeros(len(grid)), np.zeros(len(grid))
    for session in learning:
        for raised, is_right in session.verdicts():
            is_of_group = group in raised.attributes if group else bool(set(raised.attributes) - set(own))
            if is_of_group:
                (right if is_right else false)[grid <= raised.probability] += 1
    return right, false


def _start(learning: Sequence[LabelledSession], path: Sequence[Bars], target: ThresholdTarget, testing: int) -> int:
    """Return where the learning sessions let the test most likely pass; stricter thresholds flag too little to tell."""
    times = testing / len(learning)
    bounds = []
    for bars in path:
        false, right, _, _ = total([count_session(session, bars) for session in learning])
        bounds.append(share_bound(times * false, times * (false + right), CONFIDENCE) if false + right else 1.0)
    return int(np.argmin(bounds))


def _more(
    path: Sequence[MeasuredBars],
    chosen: MeasuredBars | None,
    target: ThresholdTarget,
    testing: Sequence[LabelledSession],
    of_all: float,
) -> MoreLabels | None:
    """Return what would let laxer thresholds hold whose estimate is well within the target; None if there are none."""
    after = path.index(chosen) + 1 if chosen else 0
    laxer = [point for point in path[after:] if point.estimate <= _LIKELY * target.limit and point.false + point.right]
    best = max(laxer, key=lambda point: point.recall, default=None)
    if best is None or (chosen and best.recall <= chosen.recall):
        return None
    counts = [count_session(session, best.bars) for session in testing]
    times = next(
        (times for times in range(2, _MOST_TIMES) if estimate_and_bound(counts * times, target)[1] <= target.limit),
        None,
    )
    if times is None:
        return None
    more = (times - 1) * of_all
    return MoreLabels(
        sessions=math.ceil(more * len(testing)),
        hours=more * best.hours,
        errors=math.ceil(more * best.labelled),
        recall=best.recall,
    )
