"""Measure agreement between coders: humans among themselves, and the monitor with each human, never mixed."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from itertools import combinations
from typing import TypeVar

from norm_core.evaluation.agreement_coefficients import Tally, Unit, cohen_kappa, fleiss_kappa, krippendorff_alpha
from norm_core.evaluation.f1 import f1_score
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_core.runtime.wording import count_of
from study_desk.coding.labels import by_coder
from study_desk.coding.matching import match, match_any
from study_desk.log.recording import Recording
from study_desk.log.schema import MONITOR, Label

T = TypeVar("T")

TOLERANCES_S = (0.5, 1.0, 2.0, 5.0)
NO_EVENT = "nothing"
ALL = "all"


class AgreementError(TactfulError, ValueError):
    """The labels allow no measure of agreement."""


@record
class CodedSession:
    """One session's labels by coder."""

    name: str
    start_ns: int
    end_ns: int
    labels: dict[str, tuple[Label, ...]]
    reviewed: dict[str, frozenset[str]] = field(default_factory=dict)  # for reviewers: the events with a verdict

    @property
    def events(self) -> frozenset[str]:
        """The events that the monitor flagged."""
        return frozenset(label.event_id for label in self.labels.get(MONITOR, ()))

    def between(self, coders: Iterable[str]) -> "CodedSession | None":
        """Restrict the session to what these coders share. An event not yet reviewed is no rejection.

        Returns None where they share nothing, as when one coded alone and the other reviewed only part.
        """
        if not set(coders) <= self.labels.keys():
            return None
        events = self.events.intersection(*(self.reviewed[coder] for coder in coders if coder in self.reviewed))
        if events == self.events:
            return self
        labels = {coder: self.labels[coder] for coder in coders}
        if not labels.keys() <= {MONITOR, *self.reviewed}:
            return None
        return replace(self, labels={c: tuple(x for x in coded if x.event_id in events) for c, coded in labels.items()})


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


@record
class Confusion:
    """Counts of matched events by both coders' labels. "Nothing" stands for no match."""

    coders: tuple[str, str]
    categories: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    tolerance_s: float


@record
class Agreement:
    """The agreement of all coders over a study's sessions, by attribute."""

    sessions: int
    coders: tuple[str, ...]
    rows: tuple[AgreementRow, ...]
    confusions: tuple[Confusion, ...]
    remarks: tuple[str, ...]


def sessions_of(recordings: Iterable[Recording], extra: dict[str, Sequence[Label]] | None = None) -> list[CodedSession]:
    """Collect sessions with the labels in their logs, and with imported labels by session name."""
    sessions = []
    for recording in recordings:
        coders = dict(by_coder(recording))
        reviewed: dict[str, set[str]] = {}
        for review in recording.reviews:
            if review.reviewer not in recording.coders:
                reviewed.setdefault(review.reviewer, set()).add(review.event_id)
        for label in (extra or {}).get(recording.info.session, ()):
            coders[label.coder] = (*coders.get(label.coder, ()), label)
        sessions.append(
            CodedSession(
                name=recording.info.session,
                start_ns=recording.start_ns,
                end_ns=recording.end_ns,
                labels=coders,
                reviewed={reviewer: frozenset(events) for reviewer, events in reviewed.items()},
            )
        )
    return sessions


def measure_agreement(
    sessions: Sequence[CodedSession],
    *,
    tolerances_s: Sequence[float] = TOLERANCES_S,
    kappa_tolerance_s: float = 1.0,
    frame_s: float = 1.0,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Compute every measure for each two coders who share a session, and over all humans if there are several."""
    if frame_s <= 0 or any(t < 0 for t in (*tolerances_s, kappa_tolerance_s)):
        raise AgreementError(
            "the frame or a tolerance is out of range; give a frame above 0 s, and tolerances of at least 0 s"
        )
    coders = sorted({coder for session in sessions for coder in session.labels})
    humans = [coder for coder in coders if coder != MONITOR]
    if not humans:
        raise AgreementError(
            "there is no human coder to agree with: import labels (study import) or let reviewers judge (study review)"
        )
    estimator = _Estimator(resamples, seed)
    rows: list[AgreementRow] = []
    confusions: list[Confusion] = []
    pairs = [("human-human", pair) for pair in combinations(humans, 2)]
    pairs += [("monitor-human", (MONITOR, human)) for human in humans if MONITOR in coders]
    for comparison, pair in pairs:
        shared = [of_pair for s in sessions if (of_pair := s.between(pair))]
        if shared:
            rows += estimator.pair(comparison, pair, shared, tolerances_s, kappa_tolerance_s, frame_s)
            confusions.append(_confusion(pair, shared, kappa_tolerance_s))
    if len(humans) > 1:
        shared = [every for s in sessions if (every := s.between(humans))]
        if shared:
            rows += estimator.group("human-human", tuple(humans), shared, frame_s)
    return Agreement(
        sessions=len(sessions),
        coders=tuple(coders),
        rows=tuple(rows),
        confusions=tuple(confusions),
        remarks=tuple(_remarks(sessions, humans)),
    )


class _Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, resamples: int, seed: int) -> None:
        self._resamples, self._seed = resamples, seed

    def pair(  # noqa: PLR0917
        self,
        comparison: str,
        pair: tuple[str, str],
        sessions: Sequence[CodedSession],
        tolerances_s: Sequence[float],
        kappa_tolerance_s: float,
        frame_s: float,
    ) -> Iterable[AgreementRow]:
        for polarity, attribute in _label_groups(sessions, pair):
            selected = [[_select(s.labels[c], polarity, attribute) for c in pair] for s in sessions]
            names = (polarity or ALL, attribute or ALL)
            for tolerance_s in tolerances_s:
                counts = [_counts(a, b, s_to_ns(tolerance_s)) for a, b in selected]
                events = sum(map(sum, counts))
                estimate = self._estimate(counts, _f1)
                yield AgreementRow(
                    comparison=comparison, coders=pair, polarity=names[0], attribute=names[1], measure="event F1",
                    tolerance_s=tolerance_s, units=events, estimate=estimate,
                )  # fmt: skip
            if attribute is None:
                matched = [_event_units(a, b, s_to_ns(kappa_tolerance_s)) for a, b in selected]
                yield self._row(
                    comparison, pair, names, "event-matched Cohen's kappa", kappa_tolerance_s, matched, cohen_kappa
                )
            else:
                frames = [_frames(s, pair, polarity, attribute, frame_s) for s in sessions]
                for measure, coefficient in (
                    ("frame-level Cohen's kappa", cohen_kappa),
                    ("frame-level Krippendorff's alpha", krippendorff_alpha),
                ):
                    yield self._row(comparison, pair, names, measure, frame_s, frames, coefficient)

    def group(
        self, comparison: str, coders: tuple[str, ...], sessions: Sequence[CodedSession], frame_s: float
    ) -> Iterable[AgreementRow]:
        for polarity, attribute in _label_groups(sessions, coders):
            if polarity and attribute:
                frames = [_frames(s, coders, polarity, attribute, frame_s) for s in sessions]
                for measure, coefficient in (
                    ("frame-level Fleiss' kappa", fleiss_kappa),
                    ("frame-level Krippendorff's alpha", krippendorff_alpha),
                ):
                    if len(coders) > 2 or coefficient is fleiss_kappa:
                        yield self._row(
                            comparison, coders, (polarity, attribute), measure, frame_s, frames, coefficient
                        )

    def _row(  # noqa: PLR0917
        self,
        comparison: str,
        coders: tuple[str, ...],
        names: tuple[str, str],
        measure: str,
        tolerance_s: float,
        by_session: list[Tally],
        coefficient: Callable[[Tally], float | None],
    ) -> AgreementRow:
        estimate = self._estimate(by_session, lambda chosen: coefficient(_summed(chosen)))
        return AgreementRow(
            comparison=comparison, coders=coders, polarity=names[0], attribute=names[1], measure=measure,
            tolerance_s=tolerance_s, units=_summed(by_session).total(), estimate=estimate,
        )  # fmt: skip

    def _estimate(self, by_session: Sequence[T], figure: Callable[[Sequence[T]], float | None]) -> Estimate:
        value = figure(by_session)
        if len(by_session) < 2 or value is None:
            return Estimate(value=value)
        rng = random.Random(self._seed)
        drawn = (figure(rng.choices(by_session, k=len(by_session))) for _ in range(self._resamples))
        values = [v for v in drawn if v is not None]
        low, high = percentile_interval(values) if values else (None, None)
        return Estimate(value=value, low=low, high=high)


def _summed(tallies: Iterable[Tally]) -> Tally:
    total: Tally = Counter()
    for tally in tallies:
        total.update(tally)
    return total


def _label_groups(sessions: Sequence[CodedSession], coders: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """List "all", then each polarity and attribute that any of the coders used."""
    used = {(x.polarity, x.attribute) for s in sessions for c in coders for x in s.labels[c]}
    return [(None, None), *((p.value, a.value) for p in Polarity for a in Attribute if (p, a) in used)]


def _select(labels: Sequence[Label], polarity: str | None, attribute: str | None) -> list[Label]:
    return [x for x in labels if polarity in (None, x.polarity) and attribute in (None, x.attribute)]


def _counts(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> tuple[int, int, int]:
    """Count hits, labels of `b` without a match, and labels of `a` without a match."""
    matching = match(a, b, tolerance_ns)
    return len(matching.pairs), len(matching.left_b), len(matching.left_a)


def _f1(counts: Sequence[tuple[int, int, int]]) -> float | None:
    """Compute F1. None where neither coder labelled anything."""
    hits, missed, false = map(sum, zip(*counts, strict=True))
    total = 2 * hits + missed + false
    return float(f1_score(hits, total)) if total else None


def _event_units(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Tally:
    matching = match_any(a, b, tolerance_ns)
    units: list[Unit] = [(_category(a[i]), _category(b[j])) for i, j in matching.pairs]
    units += [(_category(a[i]), NO_EVENT) for i in matching.left_a]
    units += [(NO_EVENT, _category(b[j])) for j in matching.left_b]
    return Counter(units)


def _frames(
    session: CodedSession, coders: Sequence[str], polarity: str | None, attribute: str | None, frame_s: float
) -> Tally:
    """For each frame, tell whether each coder has a label that touches it. An instant touches one frame."""
    frame_ns = s_to_ns(frame_s)
    number = max(1, -(-(session.end_ns - session.start_ns) // frame_ns))
    marked: list[set[int]] = []
    for coder in coders:
        touched: set[int] = set()
        for label in _select(session.labels[coder], polarity, attribute):
            first = (label.start_ns - session.start_ns) // frame_ns
            last = (max(label.end_ns - 1, label.start_ns) - session.start_ns) // frame_ns
            touched.update(range(max(first, 0), min(last, number - 1) + 1))
        marked.append(touched)
    return Counter(tuple("yes" if frame in touched else "no" for touched in marked) for frame in range(number))


def _confusion(pair: tuple[str, str], sessions: Sequence[CodedSession], tolerance_s: float) -> Confusion:
    units = _summed(_event_units(s.labels[pair[0]], s.labels[pair[1]], s_to_ns(tolerance_s)) for s in sessions)
    used = {value for unit in units for value in unit}
    order = [f"{p.value} {a.value}" for p in Polarity for a in Attribute]
    categories = (*(name for name in order if name in used), NO_EVENT)
    counts = tuple(tuple(units[a, b] for b in categories) for a in categories)
    return Confusion(coders=pair, categories=categories, counts=counts, tolerance_s=tolerance_s)


def _category(label: Label) -> str:
    return f"{label.polarity.value} {label.attribute.value}"


def _remarks(sessions: Sequence[CodedSession], humans: Sequence[str]) -> Iterable[str]:
    if len(sessions) < 2:
        yield "one session alone gives no interval: intervals resample whole sessions"
    if len(humans) < 2:
        yield "one human coder alone: there is no human agreement to hold the monitor's against"
    yield (
        "event-matched kappa has no count of what nobody marked, so it tends to lie below the frame-level one; "
        "nothing is a category of its own in it"
    )
    reviewers = sorted({who for session in sessions for who in session.reviewed})
    for coder in [human for human in humans if human not in reviewers]:
        if missing := [session.name for session in sessions if coder not in session.labels]:
            yield (
                f"{coder}: no coding of session {', '.join(missing)}, left out of comparisons with {coder}; "
                f"if {coder} coded it and found nothing, record that with study import LOG --coder {coder} --complete"
            )
    for session in sessions:
        for reviewer, events in sorted(session.reviewed.items()):
            if events < session.events:
                yield (
                    f"{reviewer} has reviewed {len(events)} of "
                    f"{count_of(len(session.events), 'flag')} of session {session.name}: "
                    "only those are compared, with the monitor and other reviewers; whoever codes alone is compared "
                    "once all are reviewed"
                )
    if reviewers:
        yield (
            f"{', '.join(reviewers)} judged the monitor's own flags, so what it missed is not among their labels: "
            "against them its recall says nothing, and two of them agree more than two who code alone"
        )
    minutes = sum(s.end_ns - s.start_ns for s in sessions) / NS_PER_S / 60
    yield f"computed over {minutes:.1f} minutes in {count_of(len(sessions), 'session')}"
