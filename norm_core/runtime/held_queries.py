"""Hold queries until all earlier records are known, so that the answer does not depend on the replay rate."""

from collections import deque

from norm_core.records.episode import Episode, Query
from norm_core.runtime.watermarks import JUMP_NS, Watermarks

MAX_HELD = 64


class HeldQueries:
    """Take records and queries in order of arrival, and release a query once every source has passed its stamp.

    A query with a deadline is never held. Without sources, no query is held. Beyond MAX_HELD, the oldest is released.
    """

    def __init__(self, sources: tuple[str, ...], period_ns: int) -> None:
        self._marks = Watermarks(sources, period_ns)
        self._passed_ns = dict.fromkeys(sources, -(2**63))
        self._held: deque[Query] = deque()

    def __len__(self) -> int:
        """The number of queries that still wait for a source."""
        return len(self._held)

    def take(self, record: object) -> list[Query]:
        """Take a record and return the queries that can now be answered."""
        if isinstance(record, Query):
            self._held.append(record)
            return [*self._ready(), *([self._held.popleft()] if len(self._held) > MAX_HELD else [])]
        if isinstance(record, Episode):
            return self.release()
        if not (mark := self._marks.of(record)):
            return []
        source, watermark_ns = mark
        released: list[Query] = []
        if watermark_ns < self._passed_ns[source] - JUMP_NS:
            released = self.release()
            self._passed_ns = dict.fromkeys(self._passed_ns, -(2**63))
        self._passed_ns[source] = max(self._passed_ns[source], watermark_ns)
        return [*released, *self._ready()]

    def release(self) -> list[Query]:
        """Return all queries still held, for example at the edge of an episode or at the end of the input."""
        released = list(self._held)
        self._held.clear()
        return released

    def _ready(self) -> list[Query]:
        complete_until_ns = min(self._passed_ns.values(), default=None)
        ready = [
            q
            for q in self._held
            if complete_until_ns is None or q.deadline_ns is not None or q.stamp_ns < complete_until_ns
        ]
        self._held = deque(query for query in self._held if query not in ready)
        return ready
