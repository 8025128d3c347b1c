"""A buffer of recent records for queries, used alike by a node and a replay."""

from collections import deque

from norm_core.records.episode import Episode, EpisodeEdge
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.window import Window, gather_window
from norm_core.runtime.time import s_to_ns

# How many records of each kind are kept.
MAX_RECORDS = 256


class RecentRecords:
    """The records of the last seconds. An episode starts empty, so that nothing of an earlier one is used."""

    def __init__(self, window_s: float) -> None:
        self._window_ns = s_to_ns(window_s)
        self._frames: deque[Frame] = deque(maxlen=MAX_RECORDS)
        self._utterances: deque[Utterance] = deque(maxlen=MAX_RECORDS)
        self._presences: deque[Presence] = deque(maxlen=MAX_RECORDS)
        self._begin_ns = 0

    def add(self, record: Frame | Utterance | Presence | Episode) -> None:
        """Store a record; the start of an episode drops the earlier ones."""
        match record:
            case Frame():
                self._frames.append(record)
            case Utterance():
                if record.final:  # otherwise marks of silence would displace utterances
                    self._utterances.append(record)
            case Presence():
                self._presences.append(record)
            case Episode():
                if record.state is EpisodeEdge.BEGIN:
                    self._frames.clear()
                    self._utterances.clear()
                    self._presences.clear()
                    self._begin_ns = record.start_ns

    def window(self, end_ns: int, now_ns: int) -> Window | None:
        """Return the window that ends at `end_ns`; None without records, which is not the same as a quiet scene."""
        start_ns = min(end_ns, now_ns) - self._window_ns
        if not (self._frames or self._presences):
            return None
        # The newest frame belongs to it at any age, so that the answer can state its age.
        seen_ns = [frame.stamp_ns for frame in self._frames if frame.stamp_ns <= end_ns]
        start_ns = min([start_ns, *seen_ns[-1:]])
        return gather_window(start_ns, end_ns + 1, self._frames, self._utterances, presences=self._presences)

    def gather_episode(self, end_ns: int) -> Window:
        """Return the window that ends at `end_ns`, from this episode alone; it may be empty."""
        start_ns = max(end_ns - self._window_ns, min(self._begin_ns, end_ns))
        return gather_window(start_ns, end_ns + 1, self._frames, self._utterances)
