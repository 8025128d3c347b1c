"""A queue of bounded length that counts what it drops."""

from collections import deque
from contextlib import suppress
from enum import StrEnum
from threading import Condition
from typing import Generic, TypeVar

from norm_core.records.status import QueueStatus

T = TypeVar("T")


class OverflowPolicy(StrEnum):
    """How a full queue treats a new entry."""

    LATEST_WINS = "latest_wins"  # the newest entry replaces the oldest
    REFUSE = "refuse"  # the queue refuses the newest entry


class BoundedQueue(Generic[T]):
    """A first-in, first-out queue between threads; it counts every entry lost to a full queue.

    An order, such as the end of the input, keeps its position and is never dropped; it does not use up capacity.
    """

    def __init__(self, name: str, capacity: int, policy: OverflowPolicy = OverflowPolicy.LATEST_WINS) -> None:
        """Start with an empty queue. Raises ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"queue {name} needs room for at least one entry, not {capacity}")
        self._name = name
        self._capacity = capacity
        self._policy = policy
        self._entries: deque[tuple[T, bool]] = deque()  # each with whether it is an order
        self._order_count = 0  # among the entries
        self._changed = Condition()
        self._received = 0
        self._dropped = 0
        self._is_in_hand = False
        self._is_closed = False

    def put(self, entry: T) -> bool:
        """Add an entry without waiting; return False if the queue dropped an entry."""
        with self._changed:
            self._received += 1
            is_full = len(self._entries) - self._order_count >= self._capacity
            if self._is_closed or (is_full and self._policy is OverflowPolicy.REFUSE):
                self._dropped += 1
                return False
            if is_full:
                oldest_index = next(index for index, (_, is_order) in enumerate(self._entries) if not is_order)
                del self._entries[oldest_index]
                self._dropped += 1
            self._entries.append((entry, False))
            self._changed.notify()
            return not is_full

    def put_order(self, order: T) -> bool:
        """Add an entry that even a full queue keeps; return False if the queue is closed."""
        with self._changed:
            self._received += 1
            if self._is_closed:
                self._dropped += 1
                return False
            self._entries.append((order, True))
            self._order_count += 1
            self._changed.notify()
            return True

    def withdraw(self, entry: T) -> bool:
        """Remove an entry that is no longer needed; return whether it waited."""
        with self._changed, suppress(ValueError):
            self._entries.remove((entry, False))
            return True
        return False

    def get(self, timeout_s: float) -> T | None:
        """Return the oldest entry; None on a timeout, or if the queue is closed and empty."""
        with self._changed:
            self._is_in_hand = False
            self._changed.wait_for(lambda: self._entries or self._is_closed, timeout_s)
            self._is_in_hand = bool(self._entries)
            if not self._entries:
                return None
            entry, is_order = self._entries.popleft()
            self._order_count -= is_order
            return entry

    def is_idle(self) -> bool:
        """Return whether the queue is empty and its only consumer has finished its last entry."""
        with self._changed:
            return not self._entries and not self._is_in_hand

    def is_drained(self) -> bool:
        """Return whether the queue is closed and empty."""
        with self._changed:
            return self._is_closed and not self._entries

    def close(self) -> None:
        """Refuse further entries and wake every waiting thread."""
        with self._changed:
            self._is_closed = True
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
