"""The least of a function of one number."""

from hypothesis import given
from hypothesis import strategies as st

from calibration.scalers import least_within


@given(st.floats(-10, 10), st.floats(-10, 0), st.floats(0.01, 10))
def test_the_valley_or_the_nearer_bound_is_found(valley: float, low: float, width: float) -> None:
    found = least_within(lambda number: abs(number - valley), low, low + width)
    assert abs(found - min(max(valley, low), low + width)) < 1e-8
