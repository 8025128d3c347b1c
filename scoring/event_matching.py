"""Match the events of two observers one to one by onset."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from norm_core.records.record import record


@record
class Matches:
    """Pairs of indices into the two sequences, and the unmatched rest of each."""

    pairs: tuple[tuple[int, int], ...]
    left_a: tuple[int, ...]
    left_b: tuple[int, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]], a_count: int, b_count: int) -> "Matches":
        """Return the sorted pairs and the unmatched indices, from the number of events of each observer."""
        ordered = tuple(sorted(pairs))
        matched_a = {i for i, _ in ordered}
        matched_b = {j for _, j in ordered}
        return cls(
            pairs=ordered,
            left_a=tuple(i for i in range(a_count) if i not in matched_a),
            left_b=tuple(j for j in range(b_count) if j not in matched_b),
        )


def match_events(
    a_ns: Sequence[int],
    b_ns: Sequence[int],
    tolerance_ns: int,
    compatible: Callable[[int, int], bool] = lambda _a, _b: True,
    *,
    in_order: bool = False,
) -> Matches:
    """Match as many compatible events as possible, with onsets within the tolerance.

    With equal numbers of pairs, each event of `a` takes the nearest event of `b` that leaves earlier events a partner.
    With `in_order`, both sequences are sorted by onset and the earliest fitting event is taken; the result is then
    symmetric. All times are in nanoseconds.
    """
    order = sorted(range(len(a_ns)), key=lambda i: (a_ns[i], i)) if in_order else range(len(a_ns))
    by_onset = sorted(range(len(b_ns)), key=lambda j: (b_ns[j], j))
    onsets_ns = [b_ns[j] for j in by_onset]

    def find_candidates(i: int) -> list[int]:
        first = bisect_left(onsets_ns, a_ns[i] - tolerance_ns)
        last = bisect_right(onsets_ns, a_ns[i] + tolerance_ns)
        candidates = [j for j in by_onset[first:last] if compatible(i, j)]
        return candidates if in_order else sorted(candidates, key=lambda j: (abs(b_ns[j] - a_ns[i]), j))

    candidates_of = {i: find_candidates(i) for i in order}
    partners: dict[int, int] = {}  # index of b to index of a
    for i in order:
        free = [j for j in candidates_of[i] if j not in partners] if in_order else []
        _find_partner(i, candidates_of, partners, free)
    return Matches.of([(i, j) for j, i in partners.items()], len(a_ns), len(b_ns))


def _find_partner(
    start: int, candidates_of: dict[int, list[int]], partners: dict[int, int], preferred: Sequence[int]
) -> None:
    """Find a partner for one event and move others if that makes room: an augmenting path, depth first."""
    tried: set[int] = set()
    # Events of a on the path, each with the candidates that it has not tried, and the event of b that it would take.
    path: list[tuple[int, Iterator[int]]] = [(start, chain(preferred, candidates_of[start]))]
    chosen: list[int] = []
    while path:
        j = next((j for j in path[-1][1] if j not in tried), None)
        if j is None:
            path.pop()
            del chosen[-1:]
            continue
        tried.add(j)
        chosen.append(j)
        if j not in partners:
            partners.update((j, i) for (i, _), j in zip(path, chosen, strict=True))
            return
        path.append((partners[j], iter(candidates_of[partners[j]])))
