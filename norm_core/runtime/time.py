"""Time as integer nanoseconds since the epoch, and clocks to pass in."""

import time
from typing import Protocol

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

# The range of builtin_interfaces/Time, whose seconds are a signed 32-bit number.
MIN_STAMP_NS = -(2**31) * NS_PER_S
MAX_STAMP_NS = 2**31 * NS_PER_S - 1
# Room for the times that are derived from a stamp, such as the start of its window.
_MARGIN_NS = 366 * 86_400 * NS_PER_S


def s_to_ns(seconds: float) -> int:
    """Convert seconds, rounded to the nearest nanosecond; raise ValueError for NaN and OverflowError for infinities."""
    whole = seconds.__floor__()
    return whole * NS_PER_S + round((seconds - whole) * NS_PER_S)


def ns_to_s(nanoseconds: int) -> float:
    """Convert to seconds for people and plots; inexact for times since the epoch."""
    return nanoseconds / NS_PER_S


def split_stamp(stamp_ns: int) -> tuple[int, int]:
    """Return the seconds and nanoseconds of builtin_interfaces/Time; the nanoseconds are never negative."""
    if not MIN_STAMP_NS <= stamp_ns <= MAX_STAMP_NS:
        raise ValueError(f"{stamp_ns} ns is outside what a ROS time can hold")
    return divmod(stamp_ns, NS_PER_S)


def is_usable_stamp(stamp_ns: int) -> bool:
    """Whether a stamp is there, as seconds of -1 stand for none, and not at the ends of what a ROS time can hold."""
    return stamp_ns != -NS_PER_S and MIN_STAMP_NS + _MARGIN_NS <= stamp_ns <= MAX_STAMP_NS - _MARGIN_NS


def join_stamp(sec: int, nanosec: int) -> int:
    """Return nanoseconds since the epoch; the inverse of `split_stamp`."""
    return sec * NS_PER_S + nanosec


class Clock(Protocol):
    """A source of the current time. Code that decides takes a clock and never reads the system time."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since the epoch."""


class WallClock:
    """The system clock."""

    def now_ns(self) -> int:
        """Return the system time in nanoseconds since the epoch."""
        return time.time_ns()


class ReplayClock:
    """A clock that moves only by `advance_to`, and never backwards."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        """Return the last time given to `advance_to`, in nanoseconds."""
        return self._now_ns

    def advance_to(self, now_ns: int) -> None:
        """Advance to `now_ns`; raise ValueError for a time before the present one."""
        if now_ns < self._now_ns:
            raise ValueError(f"the replay clock stands at {self._now_ns} ns and cannot go back to {now_ns} ns")
        self._now_ns = now_ns
