"""Cut records into sliding windows, by stamps and watermarks alone; no clock is read.

A source's watermark states that it will deliver no earlier stamp. A window closes when the watermarks of all sources
have passed its end. It also closes, marked late, when the foremost watermark is the lateness beyond its end.
"""

import heapq
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Set
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from norm_core.records.episode import Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Counter
from norm_core.records.window import Window, gather_window
from norm_core.runtime.config import Config
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, s_to_ns
from norm_core.streams.watermarks import JUMP_NS, SOURCES, UTTERANCES, Watermarks, check_sources

Entry = Frame | Utterance | RobotSpeech | Presence
Record = Entry | Query | Episode

LENGTH_NS = 15 * NS_PER_S
STEP_NS = 5 * NS_PER_S
LATENESS_NS = 4 * NS_PER_S
# Requested windows that wait at once.
MAX_REQUESTED = 64
# Of these, windows for queries; the others are reserved for cues.
MAX_QUERIES = MAX_REQUESTED // 2
# About the size of a record without a picture.
_RECORD_BYTES = 1000


class Purpose(StrEnum):
    """The purpose for which a window is requested."""

    CUE = "cue"
    QUERY = "query"


class WindowCutter:
    """Records and watermarks in, windows out. Windows end at multiples of the step, and at requested times."""

    def __init__(
        self,
        sources: Iterable[str],
        *,
        length_ns: int = LENGTH_NS,
        step_ns: int = STEP_NS,
        lateness_ns: int | None = LATENESS_NS,
        max_entries: int = 5000,
        max_bytes: int = 64_000_000,
    ) -> None:
        """Wait for every source without a limit if the lateness is None, as lockstep needs it."""
        self._sources = tuple(sources)
        if not self._sources or not 0 < step_ns <= length_ns:
            raise ValueError("windows need a source, and a step above 0 and of at most their length")
        self._length_ns, self._step_ns, self._lateness_ns = length_ns, step_ns, lateness_ns
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._tally: Tally[str] = Tally()
        self._stored_from_ns = BEFORE_ALL_NS
        self._restart()

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The counters of late, dropped and restarted input."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    @property
    def received_sources(self) -> frozenset[str]:
        """The sources that sent anything on this timeline."""
        return frozenset(self._watermarks)

    def add(self, entry: Entry) -> None:
        """Add a record; count it if its window has already closed."""
        stamp_ns = entry.start_ns if isinstance(entry, Utterance) else entry.stamp_ns
        if self._closed_ns is not None and stamp_ns < self._closed_ns:
            self._tally["entries_late"] += 1
            if self.is_past(stamp_ns + 1) and not isinstance(entry, RobotSpeech):
                self._tally["entries_left_out"] += 1
        if stamp_ns < self._stored_from_ns:
            return
        self._serial += 1
        heapq.heappush(self._heap, (stamp_ns, self._serial, entry))
        self._bytes += _measure_size(entry)
        while len(self._heap) > self._max_entries or self._bytes > self._max_bytes:
            self._stored_from_ns = self._evict() + 1
            self._tally["entries_evicted"] += 1

    def is_on_grid(self, end_ns: int) -> bool:
        """Whether a regular window ends there."""
        return end_ns % self._step_ns == 0

    def is_past(self, end_ns: int) -> bool:
        """Whether it is too late to request a window that ends there."""
        return end_ns - self._length_ns < self._stored_from_ns

    def request(self, end_ns: int, purpose: Purpose) -> None:
        """Request a window of the usual length that ends at `end_ns`.

        A request is refused and counted if it is too old or too many wait. A window that has closed is not repeated.
        """
        queries = self.requested_ends(Purpose.QUERY)
        if purpose is Purpose.QUERY and end_ns not in queries and len(queries) >= MAX_QUERIES:
            self._tally["queries_refused"] += 1
            return
        if self.is_past(end_ns) or len(self._requests) >= MAX_REQUESTED:
            self._tally["event_windows_refused"] += 1
        elif not self.is_on_grid(end_ns) or self._closed_ns is None or end_ns > self._closed_ns:
            self._requests.setdefault(end_ns, set()).add(purpose)

    def requested_ends(self, purpose: Purpose) -> list[int]:
        """Return the ends of the requested windows that have not closed, in order."""
        return sorted(end_ns for end_ns, purposes in self._requests.items() if purpose in purposes)

    @property
    def complete_until_ns(self) -> int | None:
        """The time until which every source is complete; None before each has a watermark."""
        marks_ns = [self._watermarks.get(source) for source in self._sources]
        return None if None in marks_ns else min((mark_ns for mark_ns in marks_ns if mark_ns is not None), default=None)

    def jumps_back(self, source: str, watermark_ns: int) -> bool:
        """Whether this watermark starts a new timeline."""
        before_ns = self._watermarks.get(source)
        return before_ns is not None and watermark_ns < before_ns - JUMP_NS

    def advance(self, source: str, watermark_ns: int) -> list[Window]:
        """Advance a source's watermark; a jump back flushes and returns the windows of the old timeline."""
        if source not in self._sources:
            raise ValueError(f"{source} is not a source of these windows; they are {', '.join(self._sources)}")
        before_ns = self._watermarks.get(source)
        if self.jumps_back(source, watermark_ns):
            self._tally["timeline_restarts"] += 1
            flushed = self.flush()
            self._restart()
            self._watermarks[source] = watermark_ns
            return flushed
        self._watermarks[source] = watermark_ns if before_ns is None else max(before_ns, watermark_ns)
        return []

    def flush(self) -> list[Window]:
        """Close all open windows, for example at the end of a bag; mark incomplete sources as missing."""
        windows = []
        while (end_ns := self._next_end_ns()) is not None:
            windows.append(self.cut(end_ns))
        return windows

    def _restart(self) -> None:
        """Forget all records, requests and watermarks."""
        self._heap: list[tuple[int, int, Entry]] = []
        self._bytes = self._serial = 0
        self._watermarks: dict[str, int] = {}
        self._requests: dict[int, set[Purpose]] = {}  # by the windows' ends
        self._closed_ns: int | None = None
        self._stored_from_ns = BEFORE_ALL_NS

    def closable_windows(self, input_end_ns: int | None = None) -> Iterator[tuple[Window, Set[Purpose]]]:
        """Yield the windows that can close, in time order, with what each was requested for.

        A request made in between is honoured. After the input has ended, nothing up to `input_end_ns` is awaited.
        """
        while (end_ns := self._next_end_ns()) is not None:
            is_ended = input_end_ns is not None and end_ns <= input_end_ns
            if not (is_ended or not self._find_incomplete(end_ns) or self._is_overdue(end_ns)):
                return
            purposes = self._requests.get(end_ns, set())
            yield self.cut(end_ns), purposes

    def end_input(self) -> int | None:
        """Request a window after the newest record and window, and complete the sources; return its end, or None.

        A source without records is not completed: it is missing from the windows that follow.
        """
        if not self._heap:
            return None
        ends_ns = (entry.end_ns if isinstance(entry, Utterance) else entry.stamp_ns for _, _, entry in self._heap)
        newest_ns = max(ends_ns)
        end_ns = 1 + max(newest_ns, self._closed_ns or newest_ns)
        self._requests.setdefault(end_ns, set())
        self._watermarks = {source: max(mark_ns, end_ns) for source, mark_ns in self._watermarks.items()}
        return end_ns

    def _is_overdue(self, end_ns: int) -> bool:
        """Whether the foremost source is past the end by more than the lateness."""
        foremost_ns = max(self._watermarks.values(), default=end_ns)
        return self._lateness_ns is not None and foremost_ns >= end_ns + self._lateness_ns

    def _next_end_ns(self) -> int | None:
        """Return the next window's end: a requested one, or the next on the grid that contains a record."""
        return min((*self._requests, *self._next_grid_ends_ns()), default=None)

    def _next_grid_ends_ns(self) -> tuple[int, ...]:
        """Return the end of the next regular window that contains a record; nothing if no window does."""
        after_closed_ns = None if self._closed_ns is None else self._closed_ns + self._step_ns
        start_ns = self._stored_from_ns if after_closed_ns is None else after_closed_ns - self._length_ns
        stamps_ns = [stamp_ns for stamp_ns, _, _ in self._heap if stamp_ns >= start_ns]
        if not stamps_ns:
            return ()
        first_ns = (min(stamps_ns) // self._step_ns + 1) * self._step_ns
        return (first_ns if after_closed_ns is None else max(first_ns, after_closed_ns),)

    def cut(self, end_ns: int, *, input_end_ns: int | None = None) -> Window:
        """Cut the window that ends at `end_ns`; after the input's end no source is missing."""
        start_ns = end_ns - self._length_ns
        is_evicted = start_ns < self._stored_from_ns and self._tally["entries_evicted"] > 0
        entries = [entry for _, _, entry in self._heap]
        window = gather_window(
            start_ns,
            end_ns,
            frames=(entry for entry in entries if isinstance(entry, Frame)),
            utterances=(entry for entry in entries if isinstance(entry, Utterance)),
            robot_speech=(entry for entry in entries if isinstance(entry, RobotSpeech)),
            presences=(entry for entry in entries if isinstance(entry, Presence)),
            missing=self._find_incomplete(end_ns if input_end_ns is None else min(end_ns, input_end_ns)),
            late=is_evicted,
        )
        self._tally["windows_late" if window.late else "windows"] += 1
        self._requests.pop(end_ns, None)
        if self.is_on_grid(end_ns):
            self._closed_ns = end_ns if self._closed_ns is None else max(self._closed_ns, end_ns)
            # Twice the length, because an event's window may be requested shortly after its end.
            self._forget(end_ns - 2 * self._length_ns)
        return window

    def _find_incomplete(self, end_ns: int) -> tuple[str, ...]:
        """Return the sources that may still deliver a record before the end."""
        return tuple(source for source in self._sources if self._watermarks.get(source, end_ns - 1) < end_ns)

    def _forget(self, before_ns: int) -> None:
        """Drop the records before a time."""
        self._stored_from_ns = max(self._stored_from_ns, before_ns)
        while self._heap and self._heap[0][0] < before_ns:
            self._evict()

    def _evict(self) -> int:
        """Drop the oldest record, and return its stamp."""
        stamp_ns, _, entry = heapq.heappop(self._heap)
        self._bytes -= _measure_size(entry)
        return stamp_ns


def _measure_size(entry: Entry) -> int:
    """Return about how many bytes a record takes."""
    return len(entry.tile_jpeg) if isinstance(entry, Frame) else _RECORD_BYTES


def _check_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources. Raises ValueError if there is none, or one that is unknown."""
    if not sources:
        raise ValueError(f"name at least one source, such as [{UTTERANCES}]; there are {', '.join(SOURCES)}")
    return check_sources(sources)


class WindowConfig(Config):
    """The sources of windows, and how long windows are and wait."""

    sources: Annotated[tuple[str, ...], AfterValidator(_check_sources)] = Field(
        default=SOURCES, description=f"sources that a window waits for, of {', '.join(SOURCES)}"
    )
    length_s: float = Field(default=15.0, ge=0.1, le=600, description="length of a window in stamp time")
    step_s: float = Field(default=5.0, ge=0.1, le=600, description="interval between the ends of windows")
    # Frames are up to a period ahead, and words of a robot's own recognizer up to two seconds behind.
    lateness_s: float = Field(
        default=4.0,
        ge=0,
        le=600,
        description="how long a window waits for sources behind the foremost one before it closes without them, marked "
        "late; 0 to wait for ever",
    )
    frames_every_s: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="period of kept frames and of presence",
    )

    def cutter(self) -> WindowCutter:
        """Return a cutter for this configuration."""
        return WindowCutter(
            self.sources,
            length_ns=s_to_ns(self.length_s),
            step_ns=s_to_ns(self.step_s),
            lateness_ns=s_to_ns(self.lateness_s) if self.lateness_s else None,
        )

    def watermarks(self) -> Watermarks:
        """Return the watermarks of the sources."""
        return Watermarks(self.sources, s_to_ns(self.frames_every_s))
