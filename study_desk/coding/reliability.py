"""Coefficients of agreement with bootstrap intervals over sessions."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.agreement_coefficients import (
    Array,
    Samples,
    Tally,
    UnitizingCounts,
    gwet_ac1s,
    icc_one_ways,
    icc_two_ways,
    krippendorff_alphas,
    number_or_none,
    unitizing_alphas,
    unitizing_counts,
    weighted_kappas,
)
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS, s_to_ns
from study_desk.coding.labels import ALL, NO, YES, CodedSession, frames_of, label_groups, select
from study_desk.coding.matching import match
from study_desk.log.schema import Label

TOLERANCES_S = (0.5, 1.0, 2.0, 5.0)
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
    """A figure with its 95 % bootstrap interval over sessions. The bounds are None for fewer than two sessions."""

    value: float | None
    low: float | None = None
    high: float | None = None


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

    @property
    def kappa_tolerance_ns(self) -> int:
        """The tolerance of kappa over events."""
        return s_to_ns(self.settings.kappa_tolerance_s)

    def row(  # noqa: PLR0917
        self,
        comparison: str,
        coders: tuple[str, ...],
        names: tuple[str, str],
        measure: str,
        tolerance_s: float,
        by_session: list[Tally],
        coefficients: Callable[[Samples], Array],
    ) -> AgreementRow:
        """Compute a coefficient over the units of all sessions."""
        units = list(summed(by_session))
        counts = np.array([[float(tally[unit]) for unit in units] for tally in by_session])
        estimate = self.estimate(
            len(by_session), lambda draws: coefficients(dict(zip(units, (draws.weights @ counts).T, strict=True)))
        )
        return AgreementRow(
            comparison=comparison, coders=coders, polarity=names[0], attribute=names[1], measure=measure,
            tolerance_s=tolerance_s, units=summed(by_session).total(), estimate=estimate,
        )  # fmt: skip

    def estimate(self, sessions: int, figures: Callable[[Draws], Array]) -> Estimate:
        """Compute a figure over sessions, with its interval. `figures` gives one a sample, NaN where undefined."""
        value = number_or_none(figures(_draws(np.arange(sessions)[None])))
        if sessions < 2 or value is None:
            return Estimate(value=value)
        if sessions not in self._resamples:
            self._resamples[sessions] = list(self._resample(sessions))
        drawn = [np.broadcast_to(figures(draws), len(draws.chosen)) for draws in self._resamples[sessions]]
        values = np.concatenate(drawn)
        values = values[~np.isnan(values)]
        low, high = percentile_interval(values) if len(values) else (None, None)
        return Estimate(value=value, low=low, high=high)

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


def summed(tallies: Iterable[Tally]) -> Tally:
    """Add the tallies of sessions."""
    total: Tally = Counter()
    for tally in tallies:
        total.update(tally)
    return total


AC1 = "frame-level Gwet's AC1"
ANY_TWO = "frame-level Krippendorff's alpha, any two coders"
SEVERITY = "severity, linearly weighted kappa"
UNITIZING = "Krippendorff's unitizing alpha"
ICC_PAIR, ICC_ANY = "ICC(2,1) of session counts", "ICC(1,1) of session counts"

Labels = tuple[str | None, str | None]


def rotating_sessions(sessions: Iterable[CodedSession]) -> list[CodedSession]:
    """Choose sessions that at least two coded alone, with the labels of these coders."""
    return [
        replace(s, labels={coder: s.labels[coder] for coder in s.independent})
        for s in sessions
        if len(s.independent) > 1
    ]


def pair_reliability(
    estimator: Estimator, comparison: str, pair: tuple[str, str], sessions: Sequence[CodedSession]
) -> Iterator[AgreementRow]:
    """Compute AC1, unitizing alpha, ICC and weighted kappa of severity for two coders."""
    rows = _Rows(estimator, comparison, pair, sessions)
    for names in label_groups(sessions, pair):
        yield rows.of_frames(names, AC1, lambda units: gwet_ac1s(units, (YES, NO)))
        yield rows.of_units(names)
        yield rows.of_counts(names, ICC_PAIR, lambda scores, draws: icc_two_ways(np.array(scores, float)[draws.chosen]))
    severities = [_severities(s.labels[pair[0]], s.labels[pair[1]], estimator.kappa_tolerance_ns) for s in sessions]
    if any(severities):
        yield estimator.row(
            comparison,
            pair,
            (ALL, ALL),
            SEVERITY,
            estimator.settings.kappa_tolerance_s,
            severities,
            lambda units: weighted_kappas(units, tuple(Severity)),
        )


def group_reliability(
    estimator: Estimator, comparison: str, coders: tuple[str, ...], sessions: Sequence[CodedSession]
) -> Iterator[AgreementRow]:
    """Compute alpha, AC1, unitizing alpha and ICC over all coders, each of whom may have coded some sessions only."""
    rows = _Rows(estimator, comparison, coders, sessions)
    for names in label_groups(sessions, coders):
        yield rows.of_frames(names, ANY_TWO, krippendorff_alphas)
        yield rows.of_frames(names, AC1, lambda units: gwet_ac1s(units, (YES, NO)))
        yield rows.of_units(names)
        yield rows.of_counts(names, ICC_ANY, lambda scores, draws: icc_one_ways(scores, draws.weights))


class _Rows:
    """The rows of some coders. With all labels, a frame counts if any label touches it."""

    def __init__(
        self, estimator: Estimator, comparison: str, coders: tuple[str, ...], sessions: Sequence[CodedSession]
    ) -> None:
        self._estimator, self._comparison, self._coders, self._sessions = estimator, comparison, coders, sessions

    def of_frames(self, names: Labels, measure: str, figures: Callable[[Samples], Array]) -> AgreementRow:
        frame_s = self._estimator.settings.frame_s
        frames = [frames_of(session, self._coders, *names, frame_s) for session in self._sessions]
        return self._estimator.row(
            self._comparison, self._coders, (names[0] or ALL, names[1] or ALL), measure, frame_s, frames, figures
        )

    def of_units(self, names: Labels) -> AgreementRow:
        """Over all labels, sum the disagreements of each polarity and attribute."""
        kinds = [names] if names[1] else label_groups(self._sessions, self._coders)[1:]
        categories: list[tuple[list[int], list[UnitizingCounts]]] = []
        for kind in kinds:
            counts = [_unitizing(session, self._coders, kind) for session in self._sessions]
            there = [index for index, each in enumerate(counts) if each]
            categories.append((there, [each for each in counts if each]))

        def figures(draws: Draws) -> Array:
            return unitizing_alphas((continua, draws.weights[:, there]) for there, continua in categories)

        number = sum(len(each.units) for _, continua in categories for each in continua)
        return self._row(names, UNITIZING, figures, number)

    def of_counts(
        self, names: Labels, measure: str, figures: Callable[[list[list[int]], Draws], Array]
    ) -> AgreementRow:
        scores = [
            [len(select(s.labels[coder], *names)) for coder in self._coders if coder in s.labels]
            for s in self._sessions
        ]
        return self._row(names, measure, lambda draws: figures(scores, draws), len(scores))

    def _row(self, names: Labels, measure: str, figures: Callable[[Draws], Array], units: int) -> AgreementRow:
        return AgreementRow(
            comparison=self._comparison,
            coders=self._coders,
            polarity=names[0] or ALL,
            attribute=names[1] or ALL,
            measure=measure,
            tolerance_s=None,
            units=units,
            estimate=self._estimator.estimate(len(self._sessions), figures),
        )


def _unitizing(session: CodedSession, coders: Sequence[str], kind: Labels) -> UnitizingCounts | None:
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
