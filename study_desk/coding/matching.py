"""Match the events of two coders one to one by onset."""

from collections.abc import Sequence

from norm_core.evaluation.event_matching import Matches, match_events
from study_desk.log.schema import Label


def match(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pair as many labels as possible with equal polarity and attribute, and onsets within the tolerance."""
    return match_events(
        [label.start_ns for label in a],
        [label.start_ns for label in b],
        tolerance_ns,
        lambda i, j: (a[i].polarity, a[i].attribute) == (b[j].polarity, b[j].attribute),
        in_order=True,
    )


def match_any(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Match like `match`, then pair the rest with any label, to show disagreements on meaning."""
    alike = match(a, b, tolerance_ns)
    onsets_ns = ([a[i].start_ns for i in alike.left_a], [b[j].start_ns for j in alike.left_b])
    others = match_events(*onsets_ns, tolerance_ns, in_order=True)
    pairs = [*alike.pairs, *((alike.left_a[i], alike.left_b[j]) for i, j in others.pairs)]
    return Matches.of(pairs, len(a), len(b))
