"""Counters and health issues of a node, written from any thread and read for its heartbeat."""

import math
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

from norm_core.records.record import record
from norm_core.records.status import Counter, Health, QueueStatus
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy

# How long the status states that texts were cut.
CUT_TEXTS_STATED_S = 10.0


@record
class _Issue:
    health: Health
    reason: str
    detail: str
    until_s: float


class HealthLog:
    """The counters, queues and issues since the node was configured; the size does not grow with time."""

    def __init__(
        self,
        on_new_issue: Callable[[Health, str], None] = lambda health, reason: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Call `on_new_issue` with each new issue, in the thread that raised it."""
        self._on_new_issue, self._now_s = on_new_issue, now_s
        self._lock = Lock()
        self._tally: Tally[str] = Tally()
        self._queues: list[BoundedQueue[Any]] = []
        self._issues: dict[str, _Issue] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._tally[name] += by

    def raise_issue(
        self, about: str, health: Health, reason: str, *, detail: str = "", lasting_s: float = math.inf
    ) -> bool:
        """Raise an issue until `clear_issue` is called or `lasting_s` has passed; return whether it is new.

        `detail` describes one occurrence. The status keeps showing that of the first, so that its text is stable.
        """
        with self._lock:
            before = self._drop_expired().get(about)
            issue = _Issue(health=health, reason=reason, detail=detail, until_s=self._now_s() + lasting_s)
            is_new = before is None or (before.health, before.reason) != (health, reason)
            self._issues[about] = issue if before is None or is_new else replace(issue, detail=before.detail)
        if is_new:
            self._on_new_issue(health, _format_issue(issue))
        return is_new

    def note_cut_texts(self, count: int) -> None:
        """Count texts that were cut because they were too long, and state it for a while."""
        if count:
            self.count("texts_cut", count)
            why = "texts: some that came were too long and were cut; let their publisher send shorter ones"
            self.raise_issue("texts", Health.DEGRADED, why, lasting_s=CUT_TEXTS_STATED_S)

    def has_issue(self, about: str) -> bool:
        """Return whether a subject has an issue."""
        with self._lock:
            return about in self._drop_expired()

    def clear_issue(self, about: str) -> None:
        """Clear the issue of a subject, if any."""
        with self._lock:
            self._issues.pop(about, None)

    def state_issue(self, about: str, reason: str, health: Health = Health.DEGRADED) -> None:
        """Raise an issue while there is a reason; clear it if the reason is empty."""
        if reason:
            self.raise_issue(about, health, reason)
        else:
            self.clear_issue(about)

    def queue(self, name: str, capacity: int, policy: OverflowPolicy = OverflowPolicy.LATEST_WINS) -> BoundedQueue[Any]:
        """Return a new queue whose depth and drops are part of the status."""
        queue: BoundedQueue[Any] = BoundedQueue(name, capacity, policy)
        with self._lock:
            self._queues.append(queue)
        return queue

    def reset(self) -> None:
        """Clear everything, as a node does on configure."""
        with self._lock:
            self._tally.clear()
            self._queues.clear()
            self._issues.clear()

    @property
    def health(self) -> Health:
        """The worst health of all issues."""
        with self._lock:
            healths = [issue.health for issue in self._drop_expired().values()]
        return max(healths, key=list(Health).index, default=Health.OK)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The text of every issue that holds."""
        with self._lock:
            return tuple(_format_issue(issue) for issue in self._drop_expired().values())

    @property
    def queues(self) -> tuple[QueueStatus, ...]:
        """The status of every queue."""
        with self._lock:
            return tuple(queue.status() for queue in self._queues)

    def is_idle(self) -> bool:
        """Return whether every queue is idle; checked in creation order, because one queue may feed the next."""
        with self._lock:
            queues = tuple(self._queues)
        return all(queue.is_idle() for queue in queues)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """All counters by name."""
        with self._lock:
            return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    def _drop_expired(self) -> dict[str, _Issue]:
        """Return the issues that still hold; the caller must hold the lock."""
        now_s = self._now_s()
        self._issues = {about: issue for about, issue in self._issues.items() if issue.until_s > now_s}
        return self._issues


def _format_issue(issue: _Issue) -> str:
    return f"{issue.reason} ({issue.detail})" if issue.detail else issue.reason
