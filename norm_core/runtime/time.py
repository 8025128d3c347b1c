"""Time as integer nanoseconds since the epoch, and the clocks that may be passed in."""

import time
from typing import Protocol

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

# The range of builtin_interfaces/Time, whose seconds are a signed 32-bit number.
MIN_STAMP_NS = -(2**31) * NS_PER_S
MAX_STAMP_NS = 2**31 * NS_PER_S - 1


def s_to_ns(seconds: float) -> int:
    """Rounds to the nearest nanosecond; refuses what is not a finite number."""
    whole = seconds.__floor__()
    return whole * NS_PER_S + round((seconds - whole) * NS_PER_S)


def ns_to_s(nanoseconds: int) -> float:
    """Seconds for people and plots; inexact for times since the epoch."""
    return nanoseconds / NS_PER_S


def split_stamp(stamp_ns: int) -> tuple[int, int]:
    """The seconds and nanoseconds of builtin_interfaces/Time; nanoseconds are never negative."""
    if not MIN_STAMP_NS <= stamp_ns <= MAX_STAMP_NS:
        raise ValueError(f"{stamp_ns} ns is outside what a ROS time can hold")
    return divmod(stamp_ns, NS_PER_S)


def join_stamp(sec: int, nanosec: int) -> int:
    """The inverse of split_stamp."""
    return sec * NS_PER_S + nanosec


class Clock(Protocol):
    """Where the current time comes from; passed in, never read from the system by what decides."""

    def now_ns(self) -> int: ...


class WallClock:
    """The system's time."""

    def now_ns(self) -> int:
        return time.time_ns()


class ReplayClock:
    """A clock that stands where it was last put, and never goes back."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance_to(self, now_ns: int) -> None:
        """Moves on to now_ns; an earlier time than the present one is an error."""
        if now_ns < self._now_ns:
            raise ValueError(f"the replay clock stands at {self._now_ns} ns and cannot go back to {now_ns} ns")
        self._now_ns = now_ns
