"""Events of two coders matched one to one by their onsets."""

from collections.abc import Sequence

from norm_core.evaluation.event_matching import Matches, match_events
from study_desk.log.schema import Label


def match(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pair labels of one polarity and attribute whose onsets lie within the tolerance: as many as there can be."""
    return match_events(
        [label.start_ns for label in a],
        [label.start_ns for label in b],
        tolerance_ns,
        lambda i, j: (a[i].polarity, a[i].attribute) == (b[j].polarity, b[j].attribute),
        in_order=True,
    )


def match_any(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """As match, then what is left is paired whatever its label: the disagreements about what happened."""
    alike = match(a, b, tolerance_ns)
    onsets_ns = ([a[i].start_ns for i in alike.left_a], [b[j].start_ns for j in alike.left_b])
    others = match_events(*onsets_ns, tolerance_ns, in_order=True)
    pairs = [*alike.pairs, *((alike.left_a[i], alike.left_b[j]) for i, j in others.pairs)]
    return Matches.of(pairs, len(a), len(b))
