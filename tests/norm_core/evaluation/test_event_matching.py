"""Events matched: the most pairs there can be, the nearest first, and the same again."""

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.evaluation.event_matching import Matches, match_events

Kinds = list[tuple[int, int]]
EVENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7)), max_size=5)


def onsets(events: Kinds) -> list[int]:
    return [at for at, _ in events]


def most_pairs(a: Kinds, b: Kinds, tolerance: int) -> int:
    """Try every assignment; kinds are sets of three attributes, and one in common makes two events compatible."""
    flipped = len(a) > len(b)
    small, large = (b, a) if flipped else (a, b)
    return max(
        sum(abs(x - y) <= tolerance and bool(k & m) for (x, k), (y, m) in zip(small, chosen, strict=False))
        for chosen in permutations(large, len(small))
    )


@given(EVENTS, EVENTS, st.integers(0, 12), st.booleans())
@settings(max_examples=300, deadline=None)
def test_as_many_pairs_are_made_as_every_assignment_tried_can_make(
    a: Kinds, b: Kinds, tolerance: int, in_order: bool
) -> None:
    found = match_events(onsets(a), onsets(b), tolerance, lambda i, j: bool(a[i][1] & b[j][1]), in_order=in_order)
    assert len(found.pairs) == most_pairs(a, b, tolerance)
    assert sorted([*(i for i, _ in found.pairs), *found.left_a]) == list(range(len(a)))
    assert sorted([*(j for _, j in found.pairs), *found.left_b]) == list(range(len(b)))
    assert all(abs(a[i][0] - b[j][0]) <= tolerance and a[i][1] & b[j][1] for i, j in found.pairs)


@given(EVENTS, EVENTS, st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_in_order_it_does_not_matter_who_is_called_a(a: Kinds, b: Kinds, tolerance: int) -> None:
    one = match_events(onsets(a), onsets(b), tolerance, in_order=True)
    other = match_events(onsets(b), onsets(a), tolerance, in_order=True)
    assert one == Matches(pairs=tuple(sorted((i, j) for j, i in other.pairs)), left_a=other.left_b, left_b=other.left_a)


def test_the_nearest_is_taken_and_of_equally_near_ones_the_first() -> None:
    assert match_events([10], [8, 11, 12], 5).pairs == ((0, 1),)
    assert match_events([10], [12, 8], 5).pairs == ((0, 0),)
    assert match_events([10], [8, 11, 12], 5, in_order=True).pairs == ((0, 0),)


def test_a_long_row_of_events_may_all_move_up_by_one() -> None:
    """Each is nearest to the partner of the one before it, and the last makes all of them move."""
    count = 3000
    found = match_events([*(10 * n for n in range(count)), -10], [10 * n - 4 for n in range(count + 1)], 6)
    assert len(found.pairs) == count + 1
