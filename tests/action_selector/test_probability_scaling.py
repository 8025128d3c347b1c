"""Scalings change how sure a choice is, and errors of calibration are measured in bins of equal mass too."""

import pytest
from pydantic import ValidationError

from action_selector.choose.probability_scaling import IsotonicCurve, ProbabilityScaling
from scoring.probabilities import (
    adaptive_calibration_error,
    expected_calibration_error,
    risk_coverage_curve,
)


def test_temperature_depends_on_the_number_of_options() -> None:
    scaling = ProbabilityScaling(temperature=1, temperature_by_count={2: 2})
    assert scaling.apply((0.8, 0.0, 0.2)) == pytest.approx((2 / 3, 0, 1 / 3))
    assert scaling.apply((0.6, 0.3, 0.1)) == pytest.approx((0.6, 0.3, 0.1))


def test_isotonic_curve_keeps_the_order() -> None:
    curve = IsotonicCurve(stated=(0.0, 1.0), observed=(0.5, 0.5))
    first, second = ProbabilityScaling(curves=(curve,)).apply((0.9, 0.1))
    assert first == pytest.approx(0.5, abs=1e-5)
    assert first > second  # the pick stays the pick


@pytest.mark.parametrize(
    "changed",
    [
        {"temperature_by_count": {2: 0.0}},
        {"curves": [{"stated": (0, 1), "observed": (0.1,)}]},
        {"curves": [{"stated": (0, 1), "observed": (0.5, 0.1)}]},
    ],
)
def test_invalid_scaling_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProbabilityScaling.model_validate(changed)


def test_adaptive_bins_show_errors_that_equal_widths_hide() -> None:
    stated = [(0.91, False)] * 50 + [(0.99, True)] * 50
    assert expected_calibration_error(stated) == pytest.approx(0.45)
    assert adaptive_calibration_error(stated) == pytest.approx((0.91 + 0.01) / 2)
    assert adaptive_calibration_error([]) is None
    assert adaptive_calibration_error([(0.6, True)] * 6 + [(0.6, False)] * 4) == pytest.approx(0)


def test_risk_coverage_curve_ignores_the_order_of_ties() -> None:
    assert risk_coverage_curve([(0.9, True), (0.9, False)]).risk == pytest.approx((0.5, 0.5))
    curve = risk_coverage_curve([(0.1, False), (0.9, True), (0.8, True), (0.7, True), (0.6, True)])
    assert curve.accuracy_at(0.8) == 1
    assert curve.accuracy_at(1) == pytest.approx(0.8)
    assert curve.area == pytest.approx(0.04)
    with pytest.raises(ValueError, match="no answers"):
        risk_coverage_curve([])
