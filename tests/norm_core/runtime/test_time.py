"""Time in integers, and clocks that never surprise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.stamps import MAX_STAMP_NS, MIN_STAMP_NS, join_stamp, split_stamp
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns


@given(st.integers(MIN_STAMP_NS, MAX_STAMP_NS))
def test_stamps_split_and_join_exactly(stamp_ns: int) -> None:
    sec, nanosec = split_stamp(stamp_ns)
    assert join_stamp(sec, nanosec) == stamp_ns
    assert 0 <= nanosec < NS_PER_S
    assert -(2**31) <= sec < 2**31


@pytest.mark.parametrize("stamp_ns", [MIN_STAMP_NS - 1, MAX_STAMP_NS + 1])
def test_what_a_ros_time_cannot_hold_is_refused(stamp_ns: int) -> None:
    with pytest.raises(ValueError, match="outside what a ROS time can hold"):
        split_stamp(stamp_ns)


@given(st.integers(-(10**15), 10**15))
def test_seconds_of_milliseconds_are_exact(milliseconds: int) -> None:
    assert s_to_ns(milliseconds / 1000) == pytest.approx(milliseconds * 1_000_000, abs=130_000)
    assert ns_to_s(s_to_ns(float(milliseconds))) == milliseconds
