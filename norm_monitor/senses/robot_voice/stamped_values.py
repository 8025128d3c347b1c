"""Values by stamp, so that the value at a time does not depend on the order of arrival."""

from bisect import bisect_right
from typing import Generic, TypeVar

V = TypeVar("V")

MOST_KEPT = 256


class StampedValues(Generic[V]):
    """The newest values of one quantity; the oldest are dropped."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._stamps: list[int] = []
        self._values: list[V] = []
        self._most_kept = most_kept

    def put(self, stamp_ns: int, value: V) -> None:
        """Store a value; of two with the same stamp, the later one holds."""
        place = bisect_right(self._stamps, stamp_ns)
        if place and self._stamps[place - 1] == stamp_ns:
            self._values[place - 1] = value
            return
        self._stamps.insert(place, stamp_ns)
        self._values.insert(place, value)
        if len(self._stamps) > self._most_kept:
            del self._stamps[0], self._values[0]

    def at(self, stamp_ns: int) -> tuple[int, V] | None:
        """Return the value at a time, with its own stamp."""
        place = bisect_right(self._stamps, stamp_ns)
        return (self._stamps[place - 1], self._values[place - 1]) if place else None

    def oldest(self) -> tuple[int, V] | None:
        """The first value still held and its stamp in nanoseconds, or None."""
        return (self._stamps[0], self._values[0]) if self._stamps else None
