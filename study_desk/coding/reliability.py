"""Coefficients of agreement with bootstrap intervals over sessions."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from norm_monitor.session_log.schema import Label
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
from scoring.f1 import f1_score
from scoring.intervals import percentile_interval
from study_desk.coding.labels import ALL, CodedSession, frames_of, label_groups, match, match_any, select

TOLERANCES_S = (1.0, 2.0)
FEW_SESSIONS = 5  # that hold the label: below, resamples vary too little for an interval
_BLOCK = 1000


@record
class AgreementSettings:
    """The tolerances, frame, number of bootstrap samples and seed of a computation."""

    tolerances_s: tuple[float, ...] = TOLERANCES_S
    kappa_tolerance_s: float = 1.0
    frame_s: float = 1.0
    resamples: int = 1000
    seed: int = 0


@record
class Estimate:
    """A figure with its 95 % bootstrap interval over sessions. The bounds are None for fewer than FEW_SESSIONS.

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
    attribute: str  # or all
    measure: str
    tolerance_s: float | None
    units: int  # number of events or frames behind it
    sessions: int  # those that hold the label
    estimate: Estimate
    condition: str = ""  # empty: all sessions


class Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, settings: AgreementSettings) -> None:
        self.settings = settings
        self._resamples: dict[int, list[Array]] = {}

    def estimate(self, sessions: int, holding: int, figures: Callable[[Array], Array]) -> Estimate:
        """Compute a figure over sessions, of which some hold the label, with its interval.

        `figures` takes how often each session is in each sample, and returns one figure per sample, NaN if undefined.
        """
        value = number_or_none(figures(np.ones((1, sessions))))
        if sessions < 2 or value is None:
            return Estimate(value=value)
        if sessions not in self._resamples:
            self._resamples[sessions] = list(self._resample(sessions))
        drawn = [np.broadcast_to(figures(weights), len(weights)) for weights in self._resamples[sessions]]
        values = np.concatenate(drawn)
        is_undefined = np.isnan(values)
        enough = holding >= FEW_SESSIONS and not is_undefined.all()
        low, high = percentile_interval(values[~is_undefined]) if enough else (None, None)
        return Estimate(value=value, low=low, high=high, undefined=float(is_undefined.mean()))

    def _resample(self, sessions: int) -> Iterator[Array]:
        """Draw sessions with replacement as the seed says, in blocks that fit in memory."""
        rng = random.Random(self.settings.seed)
        for left in range(self.settings.resamples, 0, -_BLOCK):
            draws = (Counter(rng.choices(range(sessions), k=sessions)) for _ in range(min(left, _BLOCK)))
            yield np.array([[float(drawn[session]) for session in range(sessions)] for drawn in draws])


NO_EVENT = "nothing"
EVENT_KAPPA, KAPPA = "event-matched Cohen's kappa", "frame-level Cohen's kappa"
ALPHA = "frame-level Krippendorff's alpha"
ANY_TWO = "frame-level Krippendorff's alpha, any two coders"
SEVERITY = "severity, linearly weighted kappa"

LabelGroup = tuple[str | None, str | None]  # polarity and attribute; None: any
Coefficients = Callable[[Samples], Array]


def rotating_sessions(sessions: Iterable[CodedSession]) -> list[CodedSession]:
    """Choose sessions that at least two coded alone, with the labels of these coders."""
    return [
        replace(s, labels={coder: s.labels[coder] for coder in s.independent})
        for s in sessions
        if len(s.independent) > 1
    ]


class CoderRows:
    """The rows of some coders over sessions. With all labels, a frame counts if any label touches it."""

    def __init__(
        self,
        estimator: Estimator,
        comparison: str,
        coders: tuple[str, ...],
        sessions: Sequence[CodedSession],
        condition: str = "",
    ) -> None:
        self._estimator, self._settings = estimator, estimator.settings
        self._comparison, self._coders, self._sessions, self._condition = comparison, coders, sessions, condition
        self._groups: list[LabelGroup] = label_groups(sessions, coders)

    def of_pair(self) -> Iterator[AgreementRow]:
        """Compute every measure of two coders."""
        kappa_s = self._settings.kappa_tolerance_s
        for group in self._groups:
            pairs = [self._labels_of_pair(session, group) for session in self._sessions]
            if group == (None, None):
                matched = [event_units(a, b, s_to_ns(kappa_s)) for a, b in pairs]
                yield self._of_tallies(group, EVENT_KAPPA, cohen_kappas, matched, kappa_s)
            else:
                yield self._of_frames(group, KAPPA, cohen_kappas)
                yield self._of_frames(group, ALPHA, krippendorff_alphas)
            for tolerance_s in self._settings.tolerances_s:
                counts = np.array([_counts(a, b, s_to_ns(tolerance_s)) for a, b in pairs])
                yield self._row(group, "event F1", partial(_f1s, counts), int(counts.sum()), tolerance_s)
        every = [self._labels_of_pair(session, (None, None)) for session in self._sessions]
        severities = [_severities(a, b, s_to_ns(kappa_s)) for a, b in every]
        if any(severities):
            yield self._of_tallies(
                (None, None), SEVERITY, partial(weighted_kappas, order=tuple(Severity)), severities, kappa_s
            )

    def of_rotating(self) -> Iterator[AgreementRow]:
        """Compute alpha over coders, each of whom may have coded some sessions only."""
        for group in self._groups:
            yield self._of_frames(group, ANY_TWO, krippendorff_alphas)

    def _labels_of_pair(self, session: CodedSession, group: LabelGroup) -> tuple[list[Label], list[Label]]:
        first, second = (select(session.labels[coder], *group) for coder in self._coders)
        return first, second

    def _of_frames(self, group: LabelGroup, measure: str, coefficients: Coefficients) -> AgreementRow:
        frame_s = self._settings.frame_s
        frames = [frames_of(session, self._coders, *group, frame_s) for session in self._sessions]
        return self._of_tallies(group, measure, coefficients, frames, frame_s)

    def _of_tallies(
        self, group: LabelGroup, measure: str, coefficients: Coefficients, by_session: list[Tally], tolerance_s: float
    ) -> AgreementRow:
        total = sum(by_session, Tally())
        units = list(total)
        counts = np.array([[float(tally[unit]) for unit in units] for tally in by_session])

        def figures(weights: Array) -> Array:
            return coefficients(dict(zip(units, (weights @ counts).T, strict=True)))

        return self._row(group, measure, figures, total.total(), tolerance_s)

    def _row(
        self,
        group: LabelGroup,
        measure: str,
        figures: Callable[[Array], Array],
        units: int,
        tolerance_s: float | None = None,
    ) -> AgreementRow:
        holding = sum(any(select(s.labels.get(c, ()), *group) for c in self._coders) for s in self._sessions)
        return AgreementRow(
            comparison=self._comparison,
            coders=self._coders,
            polarity=group[0] or ALL,
            attribute=group[1] or ALL,
            measure=measure,
            tolerance_s=tolerance_s,
            units=units,
            sessions=holding,
            estimate=self._estimator.estimate(len(self._sessions), holding, figures),
            condition=self._condition,
        )


def _counts(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> tuple[int, int, int]:
    """Count hits, labels of `b` without a match, and labels of `a` without a match."""
    matching = match(a, b, tolerance_ns)
    return len(matching.pairs), len(matching.left_b), len(matching.left_a)


def _f1s(counts: NDArray[np.int_], weights: Array) -> Array:
    """Compute F1 of each sample. NaN where neither coder labelled anything."""
    hits, missed, false = (weights @ counts).T
    total = 2 * hits + missed + false
    return np.where(total > 0, f1_score(hits, total), np.nan)


def event_units(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    """Count matched events by both coders' categories."""
    matching = match_any(a, b, tolerance_ns)
    units: list[Unit] = [(_category(a[i]), _category(b[j])) for i, j in matching.pairs]
    units += [(_category(a[i]), NO_EVENT) for i in matching.left_a]
    units += [(NO_EVENT, _category(b[j])) for j in matching.left_b]
    return Counter(units)


def _category(label: Label) -> str:
    return f"{label.polarity.value} {label.attribute.value}"


def _severities(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    """Collect both severities of each event that both labelled alike."""
    pairs = ((a[i].severity, b[j].severity) for i, j in match(a, b, tolerance_ns).pairs)
    return Counter((mine.value, yours.value) for mine, yours in pairs if mine and yours)
