"""Coefficients of agreement with bootstrap intervals over sessions."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from norm_monitor.session_log.schema import MONITOR, Label
from scoring.agreement_coefficients import (
    Array,
    Samples,
    Tally,
    Unit,
    cohen_kappas,
    krippendorff_alphas,
    number_or_none,
    weighted_kappas,
)
from scoring.event_matching import Matches
from scoring.f1 import f1_score
from scoring.intervals import percentile_interval
from study_desk.coding.labels import (
    ALL,
    ANY,
    CodedSession,
    count_frames,
    list_label_groups,
    match,
    match_any,
    match_onsets,
    select,
)

# The least sessions that hold a label for an interval: with fewer, resamples vary too little.
MIN_SESSIONS = 5
_BLOCK_RESAMPLES = 1000  # drawn at once, which bounds memory

# Names of the measures.
EVENT_KAPPA = "event-matched Cohen's kappa"
EVENT_F1 = "event F1"
KAPPA = "frame-level Cohen's kappa"
ALPHA = "frame-level Krippendorff's alpha"
ANY_TWO = "frame-level Krippendorff's alpha, any two coders"
SEVERITY = "severity, linearly weighted kappa"

# The category of an event that a coder did not mark.
_NO_EVENT = "nothing"

LabelGroup = tuple[str | None, str | None]  # polarity and attribute; None: any
Coefficients = Callable[[Samples], Array]


@record
class AgreementSettings:
    """The tolerances, frame, number of bootstrap samples and seed of a computation."""

    tolerances_s: tuple[float, ...] = (1.0, 2.0)
    kappa_tolerance_s: float = 1.0
    frame_s: float = 1.0
    resamples: int = 1000
    seed: int = 0


@record
class Estimate:
    """A figure with its 95 % bootstrap interval over sessions. The bounds are None for fewer than MIN_SESSIONS.

    `undefined` is the share of resamples in which the figure is undefined, such as those without the label.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    undefined: float = 0.0


@record
class AgreementRow:
    """One figure: its coders, attribute and measure."""

    comparison: str  # human-human or monitor-human
    coders: tuple[str, ...]
    polarity: str  # or all
    attribute: str  # or all; any: whatever the attributes
    measure: str
    tolerance_s: float | None
    units: int  # number of events or frames behind it
    sessions: int  # those that hold the label
    estimate: Estimate


class Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, settings: AgreementSettings) -> None:
        self.settings = settings
        self._weights_by_count: dict[int, list[Array]] = {}

    def estimate(self, sessions: int, holding: int, figures: Callable[[Array], Array]) -> Estimate:
        """Compute a figure over sessions, of which some hold the label, with its interval.

        `figures` takes how often each session is in each sample, and returns one figure per sample, NaN if undefined.
        """
        value = number_or_none(figures(np.ones((1, sessions))))
        if sessions < 2 or value is None:
            return Estimate(value=value)
        if sessions not in self._weights_by_count:
            self._weights_by_count[sessions] = list(self._resample(sessions))
        blocks = [np.broadcast_to(figures(weights), len(weights)) for weights in self._weights_by_count[sessions]]
        values = np.concatenate(blocks)
        is_undefined = np.isnan(values)
        has_interval = holding >= MIN_SESSIONS and not is_undefined.all()
        low, high = percentile_interval(values[~is_undefined]) if has_interval else (None, None)
        return Estimate(value=value, low=low, high=high, undefined=float(is_undefined.mean()))

    def _resample(self, sessions: int) -> Iterator[Array]:
        """Draw sessions with replacement as the seed says, in blocks that fit in memory."""
        rng = random.Random(self.settings.seed)
        for left in range(self.settings.resamples, 0, -_BLOCK_RESAMPLES):
            draws = (Counter(rng.choices(range(sessions), k=sessions)) for _ in range(min(left, _BLOCK_RESAMPLES)))
            yield np.array([[float(drawn[session]) for session in range(sessions)] for drawn in draws])


def select_rotating_sessions(sessions: Sequence[CodedSession]) -> list[CodedSession]:
    """Choose sessions that at least two humans coded, with the labels of these."""
    by_humans = [
        replace(session, labels={coder: session.labels[coder] for coder in session.labels if coder != MONITOR})
        for session in sessions
    ]
    return [session for session in by_humans if len(session.labels) > 1]


class CoderRows:
    """The rows of some coders over sessions. With all labels, a frame counts if any label touches it."""

    def __init__(
        self, estimator: Estimator, comparison: str, coders: tuple[str, ...], sessions: Sequence[CodedSession]
    ) -> None:
        self._estimator = estimator
        self._settings = estimator.settings
        self._comparison = comparison
        self._coders = coders
        self._sessions = sessions
        self._groups: list[LabelGroup] = list_label_groups(sessions, coders)

    def compute_pair(self) -> Iterator[AgreementRow]:
        """Compute every measure of two coders."""
        kappa_s = self._settings.kappa_tolerance_s
        for group in self._groups:
            pairs = [self._select_labels(session, group) for session in self._sessions]
            if group == (None, None):
                tallies = [_tally_events(a, b, s_to_ns(kappa_s)) for a, b in pairs]
                yield self._compute_from_tallies(group, EVENT_KAPPA, cohen_kappas, tallies, kappa_s)
            else:
                yield self._compute_from_frames(group, KAPPA, cohen_kappas)
                yield self._compute_from_frames(group, ALPHA, krippendorff_alphas)
            for tolerance_s in self._settings.tolerances_s:
                pair = match if _tells_attributes(group) else match_onsets
                counts = np.array([_count_hits(pair(a, b, s_to_ns(tolerance_s))) for a, b in pairs])
                yield self._make_row(group, EVENT_F1, partial(_compute_f1s, counts), int(counts.sum()), tolerance_s)
        every = [self._select_labels(session, (None, None)) for session in self._sessions]
        tallies = [_tally_severities(a, b, s_to_ns(kappa_s)) for a, b in every]
        if any(tallies):
            kappas = partial(weighted_kappas, order=tuple(Severity))
            yield self._compute_from_tallies((None, None), SEVERITY, kappas, tallies, kappa_s)

    def compute_rotating(self) -> Iterator[AgreementRow]:
        """Compute alpha over coders, each of whom may have coded some sessions only."""
        for group in self._groups:
            yield self._compute_from_frames(group, ANY_TWO, krippendorff_alphas)

    def _select_labels(self, session: CodedSession, group: LabelGroup) -> tuple[list[Label], list[Label]]:
        first, second = (select(session.labels[coder], *group) for coder in self._coders)
        return (first, second) if _tells_attributes(group) else (_merge(first), _merge(second))

    def _compute_from_frames(self, group: LabelGroup, measure: str, coefficients: Coefficients) -> AgreementRow:
        frame_s = self._settings.frame_s
        tallies = [count_frames(session, self._coders, *group, frame_s) for session in self._sessions]
        return self._compute_from_tallies(group, measure, coefficients, tallies, frame_s)

    def _compute_from_tallies(
        self, group: LabelGroup, measure: str, coefficients: Coefficients, tallies: list[Tally], tolerance_s: float
    ) -> AgreementRow:
        """Compute a row from the units of each session."""
        total = sum(tallies, Tally())
        units = list(total)
        counts = np.array([[float(tally[unit]) for unit in units] for tally in tallies])

        def compute_figures(weights: Array) -> Array:
            return coefficients(dict(zip(units, (weights @ counts).T, strict=True)))

        return self._make_row(group, measure, compute_figures, total.total(), tolerance_s)

    def _make_row(
        self, group: LabelGroup, measure: str, figures: Callable[[Array], Array], units: int, tolerance_s: float
    ) -> AgreementRow:
        holding = sum(any(select(s.labels.get(c, ()), *group) for c in self._coders) for s in self._sessions)
        return AgreementRow(
            comparison=self._comparison,
            coders=self._coders,
            polarity=group[0] or ALL,
            attribute=group[1] or (ANY if group[0] else ALL),
            measure=measure,
            tolerance_s=tolerance_s,
            units=units,
            sessions=holding,
            estimate=self._estimator.estimate(len(self._sessions), holding, figures),
        )


def _tells_attributes(group: LabelGroup) -> bool:
    return group[1] is not None or group[0] is None


def _merge(labels: Sequence[Label]) -> list[Label]:
    """Merge labels of one onset, such as those of a flag with several attributes."""
    return list({label.start_ns: label for label in labels}.values())


def _count_hits(matching: Matches) -> tuple[int, int, int]:
    """Count hits, labels of the second coder without a match, and labels of the first without a match."""
    return len(matching.pairs), len(matching.left_b), len(matching.left_a)


def _compute_f1s(counts: NDArray[np.int_], weights: Array) -> Array:
    """Compute F1 of each sample. NaN where neither coder labelled anything."""
    hits, missed, false = (weights @ counts).T
    total = 2 * hits + missed + false
    return np.where(total > 0, f1_score(hits, total), np.nan)


def _tally_events(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    """Count matched events by both coders' categories."""
    matching = match_any(a, b, tolerance_ns)
    units: list[Unit] = [(_name_category(a[i]), _name_category(b[j])) for i, j in matching.pairs]
    units += [(_name_category(a[i]), _NO_EVENT) for i in matching.left_a]
    units += [(_NO_EVENT, _name_category(b[j])) for j in matching.left_b]
    return Counter(units)


def _name_category(label: Label) -> str:
    return f"{label.polarity.value} {label.attribute.value}"


def _tally_severities(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    """Count both severities of each event that both labelled alike."""
    pairs = ((a[i].severity, b[j].severity) for i, j in match(a, b, tolerance_ns).pairs)
    return Counter((of_a.value, of_b.value) for of_a, of_b in pairs if of_a and of_b)
