"""Measures by their definitions: matched events, F1, area under the curve, average precision, rank correlation."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scoring.event_matching import Matches, match_events
from scoring.f1 import macro_f1
from scoring.ranking import ranking_measures

Kinds = list[tuple[int, int]]
EVENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7)), max_size=5)


def list_onsets(events: Kinds) -> list[int]:
    return [at for at, _ in events]


def count_most_pairs(a: Kinds, b: Kinds, tolerance: int) -> int:
    """Try every assignment; kinds are sets of three attributes, and one in common makes two events compatible."""
    flipped = len(a) > len(b)
    small, large = (b, a) if flipped else (a, b)
    return max(
        sum(abs(x - y) <= tolerance and bool(k & m) for (x, k), (y, m) in zip(small, chosen, strict=False))
        for chosen in permutations(large, len(small))
    )


@given(EVENTS, EVENTS, st.integers(0, 12), st.booleans())
@settings(max_examples=300, deadline=None)
def test_matching_makes_as_many_pairs_as_brute_force(a: Kinds, b: Kinds, tolerance: int, in_order: bool) -> None:
    matches = match_events(
        list_onsets(a), list_onsets(b), tolerance, lambda i, j: bool(a[i][1] & b[j][1]), in_order=in_order
    )
    assert len(matches.pairs) == count_most_pairs(a, b, tolerance)
    assert sorted([*(i for i, _ in matches.pairs), *matches.left_a]) == list(range(len(a)))
    assert sorted([*(j for _, j in matches.pairs), *matches.left_b]) == list(range(len(b)))
    assert all(abs(a[i][0] - b[j][0]) <= tolerance and a[i][1] & b[j][1] for i, j in matches.pairs)


@given(EVENTS, EVENTS, st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_matching_in_order_is_symmetric(a: Kinds, b: Kinds, tolerance: int) -> None:
    forward = match_events(list_onsets(a), list_onsets(b), tolerance, in_order=True)
    backward = match_events(list_onsets(b), list_onsets(a), tolerance, in_order=True)
    assert forward == Matches(
        pairs=tuple(sorted((i, j) for j, i in backward.pairs)), left_a=backward.left_b, left_b=backward.left_a
    )


def test_matching_prefers_the_nearest_then_the_first() -> None:
    assert match_events([10], [8, 11, 12], 5).pairs == ((0, 1),)
    assert match_events([10], [12, 8], 5).pairs == ((0, 0),)
    assert match_events([10], [8, 11, 12], 5, in_order=True).pairs == ((0, 0),)


def test_matching_moves_a_long_chain_of_partners() -> None:
    """Each is nearest to the partner of the one before it, and the last makes all of them move."""
    count = 3000
    matches = match_events([*(10 * n for n in range(count)), -10], [10 * n - 4 for n in range(count + 1)], 6)
    assert len(matches.pairs) == count + 1


def compute_variance_of_the_paper(counts: np.ndarray) -> float:
    """The variance of macro F1 as Takahashi et al. (2022), section 3.2, write it, for r classes."""
    total, r = counts.sum(), len(counts)
    p = counts / total
    both = [p[i, :].sum() + p[:, i].sum() for i in range(r)]
    scores = [2 * p[i, i] / both[i] for i in range(r)]
    own = sum(
        scores[i] * (both[i] - 2 * p[i, i]) / both[i] ** 2 * ((both[i] - 2 * p[i, i]) / both[i] + scores[i] / 2)
        for i in range(r)
    )
    cross = sum(p[i, j] * scores[i] * scores[j] / (both[i] * both[j]) for i in range(r) for j in range(r) if i != j)
    return float(2 / r**2 * (own + cross) / total)


@given(arrays(int, (3, 3), elements=st.integers(1, 60)))
def test_macro_f1_has_the_interval_of_the_paper(counts: np.ndarray) -> None:
    figure = macro_f1(np.hstack([counts.astype(float), np.zeros((3, 1))]))
    reach = 100 * 1.959963984540054 * compute_variance_of_the_paper(counts.astype(float)) ** 0.5
    assert figure.high == pytest.approx(min(100.0, figure.value + reach))
    assert figure.low == pytest.approx(max(0.0, figure.value - reach))


ONES = np.ones((1, 6))
SCORES = np.array([0.9, 0.5, 0.5, 0.3, 0.2, 0.2])
WANTED = np.array([True, True, False, False, True, False])


def test_ranking_measures_by_hand() -> None:
    pairs = [(a > b) + (a == b) / 2 for a in SCORES[WANTED] for b in SCORES[~WANTED]]
    areas, precisions = ranking_measures(SCORES, WANTED, ONES)
    assert areas[0] == pytest.approx(sum(pairs) / len(pairs))
    assert precisions[0] == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)  # equal scores share the precision at their last


def test_a_weight_repeats_an_item() -> None:
    weights = np.array([[2.0, 1, 0, 1, 1, 3]])
    often = np.repeat(np.arange(6), weights[0].astype(int))
    once = ranking_measures(SCORES[often], WANTED[often], np.ones((1, len(often))))
    assert np.array(ranking_measures(SCORES, WANTED, weights)) == pytest.approx(np.array(once))


def test_undefined_ranking_is_nan() -> None:
    assert np.isnan(ranking_measures(SCORES, np.ones(6, bool), ONES)[0])
