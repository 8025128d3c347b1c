"""Watermarks: the time up to which each source is complete; a query waits for them, so that no replay rate matters."""

from collections import deque

from norm_core.records.episode import Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S

# Sources with a watermark deliver in stamp order, so that a stamp proves that everything earlier has arrived. The
# robot's speech is too rare for that: each record is used on arrival, and counted if it is late.
FRAMES = "frames"
PRESENCE = "presence"
UTTERANCES = "utterances"
SOURCES = (FRAMES, PRESENCE, UTTERANCES)
# A watermark that goes back by more than this starts a new timeline.
JUMP_NS = 60 * NS_PER_S
# How many queries wait for sources.
MAX_HELD = 64


def check_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Check sources, and return them. Raises ValueError for a duplicate or a source without a watermark."""
    if set(sources) - set(SOURCES) or len(set(sources)) < len(sources):
        raise ValueError(f"sources are of {', '.join(SOURCES)}, each once")
    return sources


class Watermarks:
    """Derive the watermark of a source from each of its records, without state between records."""

    def __init__(self, sources: tuple[str, ...], period_ns: int) -> None:
        """Frames and presence come once per period, so a record completes its source up to the period's end."""
        self._sources = sources
        self._period_ns = period_ns

    def watermark_after(self, record: object) -> tuple[str, int] | None:
        """Return the source and its watermark after a record; None if the record moves no watermark."""
        match record:
            case Frame() | Presence():
                source = FRAMES if isinstance(record, Frame) else PRESENCE
                mark = source, (record.stamp_ns // self._period_ns + 1) * self._period_ns
            case Utterance():
                mark = UTTERANCES, record.start_ns
            case _:
                return None
        return mark if mark[0] in self._sources else None


class HeldQueries:
    """Hold queries, in order of arrival with the records, until every source has passed their stamps.

    A query with a deadline is never held. Without sources, no query is held. Beyond MAX_HELD, the oldest is released.
    """

    def __init__(self, sources: tuple[str, ...], period_ns: int) -> None:
        self._marks = Watermarks(sources, period_ns)
        self._passed_ns = dict.fromkeys(sources, BEFORE_ALL_NS)
        self._held: deque[Query] = deque()

    def __len__(self) -> int:
        """The number of queries that still wait for a source."""
        return len(self._held)

    def add(self, record: object) -> list[Query]:
        """Add a record; return the queries that can now be answered."""
        if isinstance(record, Query):
            self._held.append(record)
            return [*self._release_ready(), *([self._held.popleft()] if len(self._held) > MAX_HELD else [])]
        if isinstance(record, Episode):
            return self.release()
        if not (mark := self._marks.watermark_after(record)):
            return []
        source, watermark_ns = mark
        released: list[Query] = []
        if watermark_ns < self._passed_ns[source] - JUMP_NS:
            released = self.release()
            self._passed_ns = dict.fromkeys(self._passed_ns, BEFORE_ALL_NS)
        self._passed_ns[source] = max(self._passed_ns[source], watermark_ns)
        return [*released, *self._release_ready()]

    def release(self) -> list[Query]:
        """Return all queries still held, for example at the edge of an episode or at the end of the input."""
        released = list(self._held)
        self._held.clear()
        return released

    def _release_ready(self) -> list[Query]:
        complete_until_ns = min(self._passed_ns.values(), default=None)
        ready = [
            q
            for q in self._held
            if complete_until_ns is None or q.deadline_ns is not None or q.stamp_ns < complete_until_ns
        ]
        self._held = deque(query for query in self._held if query not in ready)
        return ready
