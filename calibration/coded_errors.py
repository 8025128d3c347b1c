"""The errors on which the coders of a session agree, and where they do not."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from calibration.session_flags import TOLERANCE_NS, LabelledError
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from study_desk.coding.matching import match
from study_desk.log.recording import Recording
from study_desk.log.schema import CONSENSUS, Label, Opinion


@record
class CodedErrors:
    """The errors of one session: agreed ones, and the onsets of those on which coders or labels contradict."""

    errors: tuple[LabelledError, ...]
    contested_ns: tuple[int, ...]


def coded_errors(recording: Recording) -> CodedErrors:
    """Return what all coders marked as an error; a consensus settles what it names."""
    agreed = [label for label in recording.labels if label.coder == CONSENSUS]
    dropped = [removal for removal in recording.removals if removal.coder == CONSENSUS]
    opinions = [*(one.opinions for one in agreed), *(one.opinions for one in dropped)]
    settled = {_key(opinion) for of_event in opinions for opinion in of_event}
    open_ = [one for one in recording.labels if one.coder in recording.coders and _key(one) not in settled]
    contradictory = [one for one in open_ if any(_contradict(one, other) for other in open_)]
    by_coder = [
        [one for one in open_ if one.coder == coder and one not in contradictory] for coder in sorted(recording.coders)
    ]
    shared, apart = _shared(by_coder)
    return CodedErrors(
        errors=_joined(one for one in (*agreed, *shared) if one.polarity is Polarity.ERROR),
        contested_ns=tuple(sorted({one.start_ns for one in (*contradictory, *apart)})),
    )


def _shared(by_coder: Sequence[Sequence[Label]]) -> tuple[list[Label], list[Label]]:
    """Return the first coder's labels that all others share, and the labels that one of them lacks."""
    first, *others = by_coder
    by_all = set(range(len(first)))
    pairs = []
    for other in others:
        found = dict(match(first, other, TOLERANCE_NS).pairs)
        by_all &= found.keys()
        pairs.append((other, found))
    apart = [one for place, one in enumerate(first) if place not in by_all]
    for other, found in pairs:
        taken = {found[place] for place in by_all}
        apart += [one for place, one in enumerate(other) if place not in taken]
    return [first[place] for place in sorted(by_all)], apart


def _joined(labels: Iterable[Label]) -> tuple[LabelledError, ...]:
    """Make one error of the labels of one moment, which name its attributes."""
    ordered = sorted(labels, key=lambda one: one.start_ns)
    return tuple(
        LabelledError(onset_ns=onset_ns, attributes=tuple(dict.fromkeys(one.attribute for one in group)))
        for onset_ns, group in groupby(ordered, key=lambda one: one.start_ns)
    )


def _contradict(one: Label, other: Label) -> bool:
    """Whether a coder calls the same attribute of one moment an error and a competence."""
    is_same = (one.coder, one.start_ns, one.attribute) == (other.coder, other.start_ns, other.attribute)
    return is_same and one.polarity is not other.polarity


def _key(one: Label | Opinion) -> tuple[object, ...]:
    return one.coder, one.start_ns, one.end_ns, one.polarity, one.attribute
