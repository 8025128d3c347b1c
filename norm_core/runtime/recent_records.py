"""What was lately seen and heard, for whoever is asked about it: the same in a node and in a replay."""

from collections import deque

from norm_core.records.episode import Episode, EpisodeEdge
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.window import Window, gather_window
from norm_core.runtime.time import s_to_ns

KEPT = 256  # of each kind


class RecentRecords:
    """What was seen and heard in the last seconds; an episode begins with nothing, so that none knows of another."""

    def __init__(self, window_s: float) -> None:
        self._window_ns = s_to_ns(window_s)
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._utterances: deque[Utterance] = deque(maxlen=KEPT)
        self._presences: deque[Presence] = deque(maxlen=KEPT)
        self._begin_ns = 0

    def take(self, record: Frame | Utterance | Presence | Episode) -> None:
        match record:
            case Frame():
                self._frames.append(record)
            case Utterance():
                if record.final:  # marks of silence would crowd out what was said
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
        """What was seen and heard until end_ns; None where nothing was, so that it is not taken for a quiet scene."""
        start_ns = min(end_ns, now_ns) - self._window_ns
        if not (self._frames or self._presences):
            return None
        # The newest frame is kept however old, so that the answer can say how old.
        seen_ns = [frame.stamp_ns for frame in self._frames if frame.stamp_ns <= end_ns]
        start_ns = min([start_ns, *seen_ns[-1:]])
        return gather_window(start_ns, end_ns + 1, self._frames, self._utterances, presences=self._presences)

    def within_episode(self, end_ns: int) -> Window:
        """What was seen and heard until end_ns, of this episode alone; it may be empty."""
        start_ns = max(end_ns - self._window_ns, min(self._begin_ns, end_ns))
        return gather_window(start_ns, end_ns + 1, self._frames, self._utterances)
