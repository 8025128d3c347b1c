"""A queue of bounded length that counts what it drops."""

from collections import deque
from contextlib import suppress
from enum import StrEnum
from threading import Condition
from typing import Generic, TypeVar

from norm_core.records.status import QueueStatus

T = TypeVar("T")


class OverflowPolicy(StrEnum):
    """What a full queue does with a new entry."""

    LATEST_WINS = "latest_wins"  # live: the newest entry replaces the oldest
    REFUSE = "refuse"  # lossless: a full queue refuses the entry, and the sender must wait


class BoundedQueue(Generic[T]):
    """A first-in, first-out queue between threads; it counts every entry lost to a full queue.

    An order, such as the end of the input, keeps its position and is never dropped; it does not use up capacity.
    """

    def __init__(self, name: str, capacity: int, policy: OverflowPolicy = OverflowPolicy.LATEST_WINS) -> None:
        """Raise ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"queue {name} needs room for at least one entry, not {capacity}")
        self._name, self._capacity, self._policy = name, capacity, policy
        self._entries: deque[tuple[T, bool]] = deque()  # and whether it is an order
        self._orders = 0  # among the entries
        self._changed = Condition()
        self._received = self._dropped = 0
        self._in_hand = False
        self._closed = False

    def put(self, entry: T) -> bool:
        """Add an entry without waiting; return False if the queue dropped an entry."""
        with self._changed:
            self._received += 1
            full = len(self._entries) - self._orders >= self._capacity
            if self._closed or (full and self._policy is OverflowPolicy.REFUSE):
                self._dropped += 1
                return False
            if full:
                oldest = next(index for index, (_, is_order) in enumerate(self._entries) if not is_order)
                del self._entries[oldest]
                self._dropped += 1
            self._entries.append((entry, False))
            self._changed.notify()
            return not full

    def put_order(self, order: T) -> bool:
        """Add an entry that a full queue keeps, too; return False if the queue is closed."""
        with self._changed:
            self._received += 1
            if self._closed:
                self._dropped += 1
                return False
            self._entries.append((order, True))
            self._orders += 1
            self._changed.notify()
            return True

    def withdraw(self, entry: T) -> None:
        """Remove a waiting entry that is no longer needed."""
        with self._changed, suppress(ValueError):
            self._entries.remove((entry, False))

    def get(self, timeout_s: float) -> T | None:
        """Return the oldest entry; None on a timeout, or if the queue is closed and empty."""
        with self._changed:
            self._in_hand = False
            self._changed.wait_for(lambda: self._entries or self._closed, timeout_s)
            self._in_hand = bool(self._entries)
            if not self._entries:
                return None
            entry, is_order = self._entries.popleft()
            self._orders -= is_order
            return entry

    def is_idle(self) -> bool:
        """Return whether the queue is empty and its only consumer has finished its last entry."""
        with self._changed:
            return not self._entries and not self._in_hand

    def is_drained(self) -> bool:
        """Return whether the queue is closed and empty."""
        with self._changed:
            return self._closed and not self._entries

    def close(self) -> None:
        """Refuse further entries and wake every waiting thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def status(self) -> QueueStatus:
        """Return the depth, drops and policy."""
        with self._changed:
            return QueueStatus(
                name=self._name,
                depth=len(self._entries),
                capacity=self._capacity,
                received=self._received,
                dropped=self._dropped,
            )
