"""What a node counts and what ails it, kept from any thread and read out for its heartbeat."""

import math
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

from norm_core.records.record import record
from norm_core.records.status import Counter, Health, QueueStatus
from norm_core.runtime.bounded_queue import BoundedQueue, OverflowPolicy


@record
class _Issue:
    health: Health
    reason: str
    latest: str
    until_s: float


class HealthLog:
    """Counters, queues and troubles since the node was configured; its size does not grow with time."""

    def __init__(
        self,
        on_news: Callable[[Health, str], None] = lambda health, reason: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """on_news is told of each trouble that is new, by the thread that found it."""
        self._on_news, self._now_s = on_news, now_s
        self._lock = Lock()
        self._tally: Tally[str] = Tally()
        self._queues: list[BoundedQueue[Any]] = []
        self._troubles: dict[str, _Issue] = {}

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._tally[name] += by

    def raise_issue(
        self, about: str, health: Health, reason: str, *, latest: str = "", lasting_s: float = math.inf
    ) -> bool:
        """Notes that something is not well, until mended or lasting_s has passed; True where that is news.

        latest is the particular of the latest time, which is stated with the reason and is no news by itself.
        """
        with self._lock:
            before = self._known().get(about)
            trouble = _Issue(health=health, reason=reason, latest=latest, until_s=self._now_s() + lasting_s)
            is_news = before is None or replace(trouble, latest=before.latest, until_s=before.until_s) != before
            self._troubles[about] = trouble
        if is_news:
            self._on_news(health, _stated(trouble))
        return is_news

    def clear_issue(self, about: str) -> None:
        with self._lock:
            self._troubles.pop(about, None)

    def queue(self, name: str, capacity: int, policy: OverflowPolicy) -> BoundedQueue[Any]:
        """A new queue whose depth and drops are read out with the rest."""
        queue: BoundedQueue[Any] = BoundedQueue(name, capacity, policy)
        with self._lock:
            self._queues.append(queue)
        return queue

    def reset(self) -> None:
        """Forgets everything, as a node does when it is configured."""
        with self._lock:
            self._tally.clear()
            self._queues.clear()
            self._troubles.clear()

    @property
    def health(self) -> Health:
        """The worst that is known."""
        with self._lock:
            healths = [trouble.health for trouble in self._known().values()]
        return max(healths, key=list(Health).index, default=Health.OK)

    @property
    def reasons(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(_stated(trouble) for trouble in self._known().values())

    @property
    def queues(self) -> tuple[QueueStatus, ...]:
        with self._lock:
            return tuple(queue.status() for queue in self._queues)

    def is_idle(self) -> bool:
        """True where every queue is idle; asked in the order they were made, as one may feed the next."""
        with self._lock:
            queues = tuple(self._queues)
        return all(queue.is_idle() for queue in queues)

    @property
    def counters(self) -> tuple[Counter, ...]:
        with self._lock:
            return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    def _known(self) -> dict[str, _Issue]:
        """The troubles that still last; to be called with the lock held."""
        now_s = self._now_s()
        self._troubles = {about: trouble for about, trouble in self._troubles.items() if trouble.until_s > now_s}
        return self._troubles


def _stated(trouble: _Issue) -> str:
    return f"{trouble.reason} ({trouble.latest})" if trouble.latest else trouble.reason
