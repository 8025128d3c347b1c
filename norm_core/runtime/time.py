"""Time as integer nanoseconds since the epoch, and clocks to pass in."""

import time
from typing import Protocol

from norm_core.records.stamps import NS_PER_S as NS_PER_S  # noqa: PLC0414  for all who count in it

NS_PER_MS = 1_000_000
# Earlier than any stamp.
BEFORE_ALL_NS = -(2**63)


def s_to_ns(seconds: float) -> int:
    """Convert seconds to the nearest nanosecond. Raises ValueError for NaN, OverflowError for infinities."""
    whole = seconds.__floor__()
    return whole * NS_PER_S + round((seconds - whole) * NS_PER_S)


def ns_to_s(nanoseconds: int) -> float:
    """Convert to seconds for people and plots; inexact for times since the epoch."""
    return nanoseconds / NS_PER_S


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
        """Advance to `now_ns`. Raises ValueError for a time before the present one."""
        if now_ns < self._now_ns:
            raise ValueError(f"the replay clock is at {self._now_ns} ns and cannot go back to {now_ns} ns")
        self._now_ns = now_ns
