"""Stamps of ROS as integer nanoseconds since the epoch."""

NS_PER_S = 1_000_000_000

# The range of builtin_interfaces/Time, whose seconds are a signed 32-bit number.
MIN_STAMP_NS = -(2**31) * NS_PER_S
MAX_STAMP_NS = 2**31 * NS_PER_S - 1
# A margin for times that are derived from a stamp, such as the start of its window.
_MARGIN_NS = 366 * 86_400 * NS_PER_S


def split_stamp(stamp_ns: int) -> tuple[int, int]:
    """Return the seconds and nanoseconds of builtin_interfaces/Time. Raises ValueError for a stamp beyond its range."""
    if not MIN_STAMP_NS <= stamp_ns <= MAX_STAMP_NS:
        raise ValueError(f"{stamp_ns} ns is outside what a ROS time can hold")
    return divmod(stamp_ns, NS_PER_S)


def is_usable_stamp(stamp_ns: int) -> bool:
    """Return whether a stamp is neither the mark of a missing one (-1 s) nor near the limits of a ROS time."""
    return stamp_ns != -NS_PER_S and MIN_STAMP_NS + _MARGIN_NS <= stamp_ns <= MAX_STAMP_NS - _MARGIN_NS


def join_stamp(sec: int, nanosec: int) -> int:
    """Return nanoseconds since the epoch; the inverse of `split_stamp`."""
    return sec * NS_PER_S + nanosec
