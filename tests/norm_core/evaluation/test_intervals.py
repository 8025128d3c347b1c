"""Intervals against tables of others, and calibration by hand."""

import math

import numpy as np
import pytest

from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.evaluation.probabilities import brier_score, expected_calibration_error


def test_a_bootstrap_of_a_mean_is_as_wide_as_its_standard_error_says() -> None:
    values = np.random.default_rng(1).normal(size=400)
    low, high = percentile_interval(values[draw_clusters(400, 4000)].mean(axis=1))
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / math.sqrt(400), rel=0.05)


def test_calibration_by_hand() -> None:
    stated = [(0.9, True), (0.9, False), (0.6, True), (0.6, True)]
    assert expected_calibration_error(stated) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4)
    assert brier_score(stated) == pytest.approx((0.01 + 0.81 + 0.16 + 0.16) / 4)
    assert expected_calibration_error([]) is brier_score([]) is None
