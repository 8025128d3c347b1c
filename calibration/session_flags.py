"""The errors on which a session's coders agree, and what the monitor would flag there at each probability."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import groupby

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, Label, Opinion
from scoring.event_matching import match_events
from sim_replays.monitor_bench.event_metrics import TOLERANCE_S
from study_desk.coding.labels import match

TOLERANCE_NS = s_to_ns(TOLERANCE_S)


@record
class Bars:
    """The probability from which an error is flagged, by attribute."""

    rest: float
    by_attribute: dict[Attribute, float] = field(default_factory=dict)

    def of(self, attribute: Attribute) -> float:
        """Return the threshold of an attribute."""
        return self.by_attribute.get(attribute, self.rest)


@record
class RaisedError:
    """An error that the monitor would flag if its probability sufficed."""

    onset_ns: int
    probability: float
    attributes: tuple[Attribute, ...]


@record
class LabelledError:
    """An error that coders marked; without knowledge of its attribute it has all of them."""

    onset_ns: int
    attributes: tuple[Attribute, ...]


@record
class LabelledSession:
    """One session: its length, its labelled errors, and the errors that the monitor raises from any probability."""

    name: str
    hours: float
    errors: tuple[LabelledError, ...]
    raised: tuple[RaisedError, ...]
    contested_ns: tuple[int, ...] = ()  # where coders disagree; a flag there is neither right nor false

    def verdicts(self, bars: Bars | None = None) -> list[tuple[RaisedError, bool]]:
        """Return what is flagged from the bars on, likeliest first, and whether a label bears it out."""
        flagged = [
            RaisedError(onset_ns=error.onset_ns, probability=error.probability, attributes=named)
            for error in sorted(self.raised, key=lambda error: (-error.probability, error.onset_ns))
            if (named := tuple(a for a in error.attributes if bars is None or error.probability >= bars.of(a)))
        ]
        # Likeliest first, so that what is right at strict bars stays right at laxer ones.
        onsets_ns = [error.onset_ns for error in flagged], [error.onset_ns for error in self.errors]
        matches = match_events(
            *onsets_ns,
            TOLERANCE_NS,
            lambda i, j: bool(set(flagged[i].attributes) & set(self.errors[j].attributes)),
        )
        right = {i for i, _ in matches.pairs}
        return [
            (error, place in right)
            for place, error in enumerate(flagged)
            if place in right or not any(abs(error.onset_ns - at_ns) <= TOLERANCE_NS for at_ns in self.contested_ns)
        ]


@record
class Counts:
    """What is flagged in one session."""

    hours: float
    false: int
    right: int
    labelled: int


def count_session(session: LabelledSession, bars: Bars) -> Counts:
    """Count the false and the right flags of a session."""
    verdicts = [is_right for _, is_right in session.verdicts(bars)]
    right = sum(verdicts)
    return Counts(hours=session.hours, false=len(verdicts) - right, right=right, labelled=len(session.errors))


def total(counts: Sequence[Counts]) -> tuple[int, int, int, float]:
    """Return the false and right flags, the labelled errors, and the hours of all sessions."""
    return (
        sum(count.false for count in counts),
        sum(count.right for count in counts),
        sum(count.labelled for count in counts),
        sum(count.hours for count in counts),
    )


@record
class CodedErrors:
    """The errors of one session: agreed ones, and the onsets of those on which coders or labels contradict."""

    errors: tuple[LabelledError, ...]
    contested_ns: tuple[int, ...]


def coded_errors(recording: Recording) -> CodedErrors:
    """Return what all coders marked as an error; a consensus settles what it names."""
    agreed = [label for label in recording.labels if label.coder == CONSENSUS]
    dropped = [removal for removal in recording.removals if removal.coder == CONSENSUS]
    opinions = [*(label.opinions for label in agreed), *(removal.opinions for removal in dropped)]
    settled = {_key(opinion) for of_event in opinions for opinion in of_event}
    open_ = [label for label in recording.labels if label.coder in recording.coders and _key(label) not in settled]
    contradictory = [label for label in open_ if any(_contradict(label, other) for other in open_)]
    by_coder = [
        [label for label in open_ if label.coder == coder and label not in contradictory]
        for coder in sorted(recording.coders)
    ]
    shared, apart = _shared(by_coder)
    return CodedErrors(
        errors=_joined(label for label in (*agreed, *shared) if label.polarity is Polarity.ERROR),
        contested_ns=tuple(sorted({label.start_ns for label in (*contradictory, *apart)})),
    )


def _shared(by_coder: Sequence[Sequence[Label]]) -> tuple[list[Label], list[Label]]:
    """Return the first coder's labels that all others share, and the labels that one of them lacks."""
    first, *others = by_coder
    by_all = set(range(len(first)))
    pairs = []
    for other in others:
        matches = dict(match(first, other, TOLERANCE_NS).pairs)
        by_all &= matches.keys()
        pairs.append((other, matches))
    apart = [label for place, label in enumerate(first) if place not in by_all]
    for other, matches in pairs:
        taken = {matches[place] for place in by_all}
        apart += [label for place, label in enumerate(other) if place not in taken]
    return [first[place] for place in sorted(by_all)], apart


def _joined(labels: Iterable[Label]) -> tuple[LabelledError, ...]:
    """Make one error of the labels of one moment, which name its attributes."""
    ordered = sorted(labels, key=lambda label: label.start_ns)
    return tuple(
        LabelledError(onset_ns=onset_ns, attributes=tuple(dict.fromkeys(label.attribute for label in group)))
        for onset_ns, group in groupby(ordered, key=lambda label: label.start_ns)
    )


def _contradict(label: Label, other: Label) -> bool:
    """Whether a coder calls the same attribute of one moment an error and a competence."""
    is_same = (label.coder, label.start_ns, label.attribute) == (other.coder, other.start_ns, other.attribute)
    return is_same and label.polarity is not other.polarity


def _key(label: Label | Opinion) -> tuple[object, ...]:
    return label.coder, label.start_ns, label.end_ns, label.polarity, label.attribute
