"""What a node counts and what ails it, kept from any thread and read out for its heartbeat."""

from collections import Counter as Tally
from threading import Lock
from typing import Any

from norm_core.queue import BoundedQueue, Policy
from norm_core.status import Counter, Health, QueueStatus


class Ledger:
    """Counters, queues and troubles since the node was configured."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tally: Tally[str] = Tally()
        self._queues: list[BoundedQueue[Any]] = []
        self._troubles: dict[str, tuple[Health, str]] = {}

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._tally[name] += by

    def trouble(self, about: str, health: Health, reason: str) -> bool:
        """Notes, until mended, that something is not well; True where that is news."""
        with self._lock:
            is_news = self._troubles.get(about) != (health, reason)
            self._troubles[about] = (health, reason)
            return is_news

    def mended(self, about: str) -> None:
        with self._lock:
            self._troubles.pop(about, None)

    def queue(self, name: str, capacity: int, policy: Policy) -> BoundedQueue[Any]:
        """A new queue whose depth and drops are read out with the rest."""
        queue: BoundedQueue[Any] = BoundedQueue(name, capacity, policy)
        with self._lock:
            self._queues.append(queue)
        return queue

    def begin_anew(self) -> None:
        """Forgets everything, as a node does when it is configured."""
        with self._lock:
            self._tally.clear()
            self._queues.clear()
            self._troubles.clear()

    @property
    def health(self) -> Health:
        """The worst that is known."""
        with self._lock:
            healths = [health for health, _ in self._troubles.values()]
        return max(healths, key=list(Health).index, default=Health.OK)

    @property
    def reasons(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(reason for _, reason in self._troubles.values())

    @property
    def queues(self) -> tuple[QueueStatus, ...]:
        with self._lock:
            return tuple(queue.status() for queue in self._queues)

    @property
    def counters(self) -> tuple[Counter, ...]:
        with self._lock:
            return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))
