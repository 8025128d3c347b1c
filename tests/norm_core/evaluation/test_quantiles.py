"""Quantiles against scipy 1.17.1, whose values stand here too (2026-11-23), as the environment lacks it."""

import math

import pytest

from norm_core.evaluation.quantiles import poisson_interval, share_bound, t_quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706204736174694), (2, 4.302652729749462), (9, 2.262157162798205), (38, 2.0243941639119694)],
)
def test_student_t(freedom: int, expected: float) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(expected, rel=1e-9)
    assert t_quantile(0.025, freedom) == pytest.approx(-expected, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (0, 0.0, -math.log(0.025)),
        (1, 0.025317807984289876, 5.571643390938898),
        (7, 2.8143630515198654, 14.422675361702376),
        (250, 219.9679956309373, 282.98770504231607),
    ],
)
def test_exact_poisson_interval(count: int, low: float, high: float) -> None:
    assert poisson_interval(count) == pytest.approx((low, high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("hits", "count", "bound"), [(0, 10, 0.2589), (3, 20, 0.3437), (10, 10, 1.0)]
)  # scipy.stats.beta.ppf(0.95, hits + 1, count - hits)
def test_bounds_of_shares(hits: int, count: int, bound: float) -> None:
    assert share_bound(hits, count) == pytest.approx(bound, abs=1e-4)
