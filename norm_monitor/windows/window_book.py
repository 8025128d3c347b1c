"""The windows of a monitor: requested by records, cited by flags, and published once closed."""

from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass

from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.window import ClosedWindow, Window, describe_closed_window, window_digest
from norm_monitor.windows.cutter import Entry, Purpose, WindowConfig

# Closed windows that wait for a consumer; beyond that, the oldest are dropped.
MAX_CLOSED = 256


@dataclass
class BookedWindow:
    """A window that flags may cite, with the purposes for which it was requested."""

    window: Window
    purposes: Set[Purpose] = frozenset()
    digest: str = ""  # once a flag cites the window
    is_published: bool = False


class WindowBook:
    """Request a window where a cue may wait for one, and publish those that are regular, queried or cited."""

    def __init__(self, config: WindowConfig) -> None:
        self.cutter = config.cutter()
        self.watermarks = config.watermarks()
        self._presence: tuple[object, ...] = ()  # who was there in the newest record of it
        self._published: deque[ClosedWindow] = deque(maxlen=MAX_CLOSED)

    def request_for(self, query: Query | Episode) -> None:
        """Request the window that ends at a query, or at the end of an episode."""
        if isinstance(query, Query):
            self.cutter.request(query.stamp_ns, Purpose.QUERY)
        elif query.state is EpisodeEdge.END:
            self.cutter.request(query.end_ns, Purpose.QUERY)

    def restart(self, source: str, watermark_ns: int) -> None:
        """Publish the windows of a timeline that a jump back ended."""
        self._published.extend(map(describe_closed_window, self.cutter.advance(source, watermark_ns)))

    def add(self, record: Entry) -> None:
        """Add a record, and request a window at its end where a cue may wait for it."""
        if not isinstance(record, Utterance) or record.final:
            self.cutter.add(record)
        end_ns = self._cue_end_of(record)
        if end_ns is not None and not (isinstance(record, RobotSpeech) and self.cutter.is_past(end_ns)):
            self.cutter.request(end_ns, Purpose.CUE)

    def _cue_end_of(self, entry: Entry) -> int | None:
        """Return the end of the window that a record calls for, if any; ends are exclusive."""
        match entry:
            case Utterance():
                return entry.end_ns + 1 if entry.final else None
            case RobotSpeech():
                return entry.stamp_ns + 1
            case Presence():
                before, self._presence = self._presence, (entry.state, entry.away_since_ns)
                return entry.stamp_ns + 1 if before != self._presence else None
            case Frame():
                return None

    def closable_windows(self, input_end_ns: int | None) -> Iterator[BookedWindow]:
        """Yield the windows that can close, in time order; `publish` must follow each."""
        for window, purposes in self.cutter.closable_windows(input_end_ns):
            yield BookedWindow(window, purposes)

    def has_cues(self, booked: BookedWindow) -> bool:
        """Whether the cues run on a window that does not end the input: a regular one, or one that a cue awaits."""
        return self.cutter.is_on_grid(booked.window.end_ns) or Purpose.CUE in booked.purposes

    def cite(self, booked: BookedWindow) -> str:
        """Return the digest of a window, which is published if it was closed without a citation."""
        if not booked.digest:  # once per window, and only if a flag cites it: it takes longer than most cues
            booked.digest = window_digest(booked.window)
            if booked.is_published:
                self._published.append(describe_closed_window(booked.window, booked.digest))
        return booked.digest

    def publish(self, booked: BookedWindow) -> None:
        """Publish a closed window if it is regular, queried or cited; otherwise a later citation publishes it."""
        booked.is_published = True
        is_regular = self.cutter.is_on_grid(booked.window.end_ns)
        if is_regular or Purpose.QUERY in booked.purposes or booked.digest:
            self._published.append(describe_closed_window(booked.window, booked.digest))

    def publish_last_queries(self, input_end_ns: int | None) -> None:
        """Publish the windows of queries after the end of the input, which no watermark will pass."""
        for query_ns in self.cutter.requested_ends(Purpose.QUERY):
            self._published.append(describe_closed_window(self.cutter.cut(query_ns, input_end_ns=input_end_ns)))

    def take_published(self) -> list[ClosedWindow]:
        """Return the windows that were published since the last call."""
        windows = list(self._published)
        self._published.clear()
        return windows
