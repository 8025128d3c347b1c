"""Time in integers, and clocks that never surprise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.runtime.time import (
    MAX_STAMP_NS,
    MIN_STAMP_NS,
    NS_PER_S,
    ReplayClock,
    join_stamp,
    ns_to_s,
    s_to_ns,
    split_stamp,
)


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


def test_the_rounding_is_to_the_nearest_nanosecond() -> None:
    assert [s_to_ns(s) for s in (0.1, 1.5, -0.25, 0.000_000_001_4)] == [100_000_000, 1_500_000_000, -250_000_000, 1]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_what_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        s_to_ns(seconds)


def test_a_replay_clock_stands_until_it_is_moved_and_never_goes_back() -> None:
    clock = ReplayClock(5)
    assert (clock.now_ns(), clock.now_ns()) == (5, 5)
    clock.advance_to(9)
    assert clock.now_ns() == 9
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance_to(8)
