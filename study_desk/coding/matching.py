"""Events of two coders matched one to one by their onsets."""

from collections.abc import Sequence

from norm_core.records.record import record
from study_desk.log.schema import Label


@record
class Matches:
    """Pairs of indices into the two sequences, and what is left of each."""

    pairs: tuple[tuple[int, int], ...]
    left_a: tuple[int, ...]
    left_b: tuple[int, ...]


def match(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pairs of one polarity and attribute whose onsets lie within the tolerance; as many pairs as there can be.

    Onsets on a line with one tolerance: going through both in order and pairing what fits gives the most pairs.
    """
    pairs: list[tuple[int, int]] = []
    for kind in {_kind(label) for label in a} & {_kind(label) for label in b}:
        mine = [i for i, label in enumerate(a) if _kind(label) == kind]
        yours = [j for j, label in enumerate(b) if _kind(label) == kind]
        pairs += _paired(a, b, mine, yours, tolerance_ns)
    return _matches(a, b, pairs)


def match_any(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """As match, then what is left is paired whatever its label: the disagreements about what happened."""
    alike = match(a, b, tolerance_ns)
    others = _paired(a, b, list(alike.left_a), list(alike.left_b), tolerance_ns)
    return _matches(a, b, [*alike.pairs, *others])


def _paired(
    a: Sequence[Label], b: Sequence[Label], mine: list[int], yours: list[int], tolerance_ns: int
) -> list[tuple[int, int]]:
    mine, yours = sorted(mine, key=lambda i: a[i].start_ns), sorted(yours, key=lambda j: b[j].start_ns)
    pairs, at_i, at_j = [], 0, 0
    while at_i < len(mine) and at_j < len(yours):
        i, j = mine[at_i], yours[at_j]
        apart_ns = a[i].start_ns - b[j].start_ns
        if abs(apart_ns) <= tolerance_ns:
            pairs.append((i, j))
        at_i += apart_ns <= tolerance_ns
        at_j += apart_ns >= -tolerance_ns
    return pairs


def _matches(a: Sequence[Label], b: Sequence[Label], pairs: list[tuple[int, int]]) -> Matches:
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    return Matches(
        pairs=tuple(sorted(pairs)),
        left_a=tuple(i for i in range(len(a)) if i not in taken_a),
        left_b=tuple(j for j in range(len(b)) if j not in taken_b),
    )


def _kind(label: Label) -> tuple[str, str]:
    return label.polarity.value, label.attribute.value
