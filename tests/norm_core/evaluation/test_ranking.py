"""Area under the curve, average precision and rank correlation, against their definitions."""

import numpy as np
import pytest

from norm_core.evaluation.ranking import rank_correlations, ranking_measures

ONES = np.ones((1, 6))
SCORES = np.array([0.9, 0.5, 0.5, 0.3, 0.2, 0.2])
WANTED = np.array([True, True, False, False, True, False])


def test_the_area_is_the_share_of_pairs_in_the_right_order() -> None:
    pairs = [(a > b) + (a == b) / 2 for a in SCORES[WANTED] for b in SCORES[~WANTED]]
    areas, precisions = ranking_measures(SCORES, WANTED, ONES)
    assert areas[0] == pytest.approx(sum(pairs) / len(pairs))
    assert precisions[0] == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)  # equal scores share the precision at their last


def test_a_weight_counts_an_item_so_often() -> None:
    weights = np.array([[2.0, 1, 0, 1, 1, 3]])
    often = np.repeat(np.arange(6), weights[0].astype(int))
    once = ranking_measures(SCORES[often], WANTED[often], np.ones((1, len(often))))
    assert np.array(ranking_measures(SCORES, WANTED, weights)) == pytest.approx(np.array(once))


def test_what_is_undefined_is_no_number() -> None:
    assert np.isnan(ranking_measures(SCORES, np.ones(6, bool), ONES)[0])
    assert np.isnan(rank_correlations(SCORES, np.zeros(6), ONES))


def test_ranks_correlate_whatever_the_scale() -> None:
    assert rank_correlations(SCORES, SCORES**3, ONES) == pytest.approx(1)
    assert rank_correlations(SCORES, -SCORES, ONES) == pytest.approx(-1)
