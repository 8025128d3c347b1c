"""Intervals and quantiles against tables of others and scipy 1.17.1 (2026-11-23), and calibration by hand."""

import math
import tracemalloc

import numpy as np
import pytest

from scoring.f1 import class_f1, count_confusions, macro_f1
from scoring.figures import bootstrap, estimate_difference, estimate_grade, estimate_share
from scoring.intervals import draw_clusters, percentile_interval, wilson_interval
from scoring.probabilities import expected_calibration_error
from scoring.quantiles import t_quantile


def test_a_bootstrap_is_as_wide_as_the_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=400)
    low, high = percentile_interval(values[draw_clusters(400, 4000)].mean(axis=1))
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / math.sqrt(400), rel=0.05)


def test_a_bootstrap_over_many_groups_bounds_memory() -> None:
    values = np.random.default_rng(1).integers(0, 2, 3001).astype(float)
    expected = values[draw_clusters(3001, 2000, 7)].mean(axis=1)
    tracemalloc.start()
    drawn = bootstrap(values.tolist(), [f"{number:04}" for number in range(3001)], 7)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert drawn.tolist() == expected.tolist()
    assert peak_bytes < 30_000_000


@pytest.mark.parametrize(("hits", "bounds"), [(0, (0.0, 0.258833)), (11, (0.741167, 1.0)), (5, (0.212713, 0.719908))])
def test_wilson_interval_by_hand(hits: int, bounds: tuple[float, float]) -> None:
    assert wilson_interval(hits / 11, 11) == pytest.approx(bounds, abs=1e-5)


def test_intervals_stay_open_where_nothing_varies() -> None:
    eleven = [str(number) for number in range(11)]
    figures = (
        estimate_share([0.0] * 11, eleven),
        estimate_share([1.0, 0.0] * 3, ["one picture"] * 6),
        estimate_difference([0.0] * 11, eleven),
        estimate_grade([5.0] * 11),
        class_f1(count_confusions([0] * 11, [0] * 11, 2), 0),
        macro_f1(count_confusions([0, 1] * 5, [0, 1] * 5, 2)),
    )
    assert all(figure.high - figure.low > 1e-3 for figure in figures)
    assert all(figure.low <= figure.value <= figure.high for figure in figures)
    assert (figures[0].low, round(figures[0].high, 1)) == (0.0, 25.9)
    assert figures[2].low == pytest.approx(-figures[2].high)
    assert estimate_grade([1.0, 1.0, 2.0]).low == 1.0


def test_calibration_by_hand() -> None:
    stated = [(0.9, True), (0.9, False), (0.6, True), (0.6, True)]
    assert expected_calibration_error(stated) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4)
    assert expected_calibration_error([]) is None


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706204736174694), (2, 4.302652729749462), (9, 2.262157162798205), (38, 2.0243941639119694)],
)
def test_student_t(freedom: int, expected: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(expected, rel=1e-9)
    assert t_quantile(0.025, freedom) == pytest.approx(-expected, rel=1e-9)
