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
from norm_core.runtime.time import NS_PER_MS, s_to_ns
from scoring.agreement_coefficients import (
    Array,
    Samples,
    Tally,
    Unit,
    UnitizingCounts,
    cohen_kappas,
    gwet_ac1s,
    icc_two_ways,
    krippendorff_alphas,
    number_or_none,
    unitizing_alphas,
    unitizing_counts,
    weighted_kappas,
)
from scoring.f1 import f1_score
from scoring.intervals import percentile_interval
from study_desk.coding.labels import ALL, NO, YES, CodedSession, frames_of, label_groups, match, match_any, select
from study_desk.log.schema import Label

TOLERANCES_S = (1.0, 2.0)
FEW_SESSIONS = 5  # that hold the label: below, resamples vary too little to tell anything
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


@record
class Draws:
    """Samples of sessions with replacement: one row a sample, with the sessions drawn, and how often each was."""

    chosen: NDArray[np.intp]
    weights: Array


class Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, settings: AgreementSettings) -> None:
        self.settings = settings
        self._resamples: dict[int, list[Draws]] = {}

    def estimate(self, sessions: int, holding: int, figures: Callable[[Draws], Array]) -> Estimate:
        """Compute a figure over sessions, of which some hold the label, with its interval.

        `figures` gives one a sample, NaN where undefined.
        """
        value = number_or_none(figures(_draws(np.arange(sessions)[None])))
        if sessions < 2 or value is None:
            return Estimate(value=value)
        if sessions not in self._resamples:
            self._resamples[sessions] = list(self._resample(sessions))
        drawn = [np.broadcast_to(figures(draws), len(draws.chosen)) for draws in self._resamples[sessions]]
        values = np.concatenate(drawn)
        is_undefined = np.isnan(values)
        enough = holding >= FEW_SESSIONS and not is_undefined.all()
        low, high = percentile_interval(values[~is_undefined]) if enough else (None, None)
        return Estimate(value=value, low=low, high=high, undefined=float(is_undefined.mean()))

    def _resample(self, sessions: int) -> Iterator[Draws]:
        """Draw as the seed says, in blocks that fit in memory."""
        rng = random.Random(self.settings.seed)
        for left in range(self.settings.resamples, 0, -_BLOCK):
            block = min(left, _BLOCK)
            yield _draws(np.array([rng.choices(range(sessions), k=sessions) for _ in range(block)]))


def _draws(chosen: NDArray[np.intp]) -> Draws:
    weights = np.zeros(chosen.shape)
    np.add.at(weights, (np.arange(len(chosen))[:, None], chosen), 1)
    return Draws(chosen=chosen, weights=weights)


NO_EVENT = "nothing"
EVENT_KAPPA, KAPPA = "event-matched Cohen's kappa", "frame-level Cohen's kappa"
ALPHA = "frame-level Krippendorff's alpha"
AC1 = "frame-level Gwet's AC1"
ANY_TWO = "frame-level Krippendorff's alpha, any two coders"
SEVERITY = "severity, linearly weighted kappa"
UNITIZING = "Krippendorff's unitizing alpha"
ICC_PAIR = "ICC(2,1) of session counts"

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
        for group in self._groups:
            yield self._of_frames(group, AC1, partial(gwet_ac1s, categories=(YES, NO)))
            yield self._of_units(group)
            yield self._of_counts(group)
        every = [self._labels_of_pair(session, (None, None)) for session in self._sessions]
        severities = [_severities(a, b, s_to_ns(kappa_s)) for a, b in every]
        if any(severities):
            yield self._of_tallies(
                (None, None), SEVERITY, partial(weighted_kappas, order=tuple(Severity)), severities, kappa_s
            )

    def of_rotating(self) -> Iterator[AgreementRow]:
        """Compute alpha, AC1 and unitizing alpha over coders, each of whom may have coded some sessions only."""
        for group in self._groups:
            yield self._of_frames(group, ANY_TWO, krippendorff_alphas)
            yield self._of_frames(group, AC1, partial(gwet_ac1s, categories=(YES, NO)))
            yield self._of_units(group)

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

        def figures(draws: Draws) -> Array:
            return coefficients(dict(zip(units, (draws.weights @ counts).T, strict=True)))

        return self._row(group, measure, figures, total.total(), tolerance_s)

    def _of_units(self, group: LabelGroup) -> AgreementRow:
        """Over all labels, sum the disagreements of each polarity and attribute."""
        kinds = [group] if group[1] else self._groups[1:]
        categories: list[tuple[list[int], list[UnitizingCounts]]] = []
        for kind in kinds:
            counts = [_unitizing(session, self._coders, kind) for session in self._sessions]
            there = [index for index, count in enumerate(counts) if count]
            categories.append((there, [count for count in counts if count]))

        def figures(draws: Draws) -> Array:
            return unitizing_alphas((continua, draws.weights[:, there]) for there, continua in categories)

        number = sum(len(continuum.units) for _, continua in categories for continuum in continua)
        return self._row(group, UNITIZING, figures, number)

    def _of_counts(self, group: LabelGroup) -> AgreementRow:
        pairs = [self._labels_of_pair(session, group) for session in self._sessions]
        scores = np.array([[len(labels) for labels in pair] for pair in pairs], float)
        return self._row(group, ICC_PAIR, lambda draws: icc_two_ways(scores[draws.chosen]), len(scores))

    def _row(
        self,
        group: LabelGroup,
        measure: str,
        figures: Callable[[Draws], Array],
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


def _f1s(counts: NDArray[np.int_], draws: Draws) -> Array:
    """Compute F1 of each sample. NaN where neither coder labelled anything."""
    hits, missed, false = (draws.weights @ counts).T
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


def _unitizing(session: CodedSession, coders: Sequence[str], kind: LabelGroup) -> UnitizingCounts | None:
    length_ms = (session.end_ns - session.start_ns) // NS_PER_MS
    present = [select(session.labels[coder], *kind) for coder in coders if coder in session.labels]
    return unitizing_counts(length_ms, [_units_ms(labels, session.start_ns, length_ms) for labels in present])


def _units_ms(labels: Iterable[Label], origin_ns: int, length_ms: int) -> list[tuple[int, int]]:
    """Join overlapping labels into units in whole milliseconds. An instant lasts one."""
    units: list[tuple[int, int]] = []
    for label in sorted(labels, key=lambda label: label.start_ns):
        start = min(max((label.start_ns - origin_ns) // NS_PER_MS, 0), length_ms - 1)
        end = min(max((label.end_ns - origin_ns) // NS_PER_MS, start + 1), length_ms)
        if units and start < units[-1][1]:
            units[-1] = (units[-1][0], max(end, units[-1][1]))
        else:
            units.append((start, end))
    return units


def _severities(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    """Collect both severities of each event that both labelled alike."""
    pairs = ((a[i].severity, b[j].severity) for i, j in match(a, b, tolerance_ns).pairs)
    return Counter((mine.value, yours.value) for mine, yours in pairs if mine and yours)
