"""What was lately seen and heard, for whoever is asked what to do next: the same in a node and in a replay."""

from collections import deque

from action_selector.queries import answer_of, request_of
from action_selector.request import Request
from action_selector.selector import Selector
from norm_core.decision import Decision
from norm_core.engines.call import Limit
from norm_core.episode import Answer, Episode, EpisodeEdge, Query
from norm_core.frame import Frame
from norm_core.presence import Presence
from norm_core.speech import Utterance
from norm_core.time import Clock, ReplayClock, s_to_ns
from norm_core.window import Window, gather

KEPT = 256  # of each kind


class Recall:
    """What was seen and heard in the last seconds; an episode begins with nothing, so that none knows of another."""

    def __init__(self, window_s: float) -> None:
        self._window_ns = s_to_ns(window_s)
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._utterances: deque[Utterance] = deque(maxlen=KEPT)
        self._presences: deque[Presence] = deque(maxlen=KEPT)

    def take(self, record: Frame | Utterance | Presence | Episode) -> None:
        match record:
            case Frame():
                self._frames.append(record)
            case Utterance():
                self._utterances.append(record)
            case Presence():
                self._presences.append(record)
            case Episode():
                if record.state is EpisodeEdge.BEGIN:
                    self._frames.clear()
                    self._utterances.clear()
                    self._presences.clear()

    def window(self, end_ns: int, now_ns: int) -> Window | None:
        """What was seen and heard until end_ns; None where nothing was, so that it is not taken for a quiet scene."""
        start_ns = min(end_ns, now_ns) - self._window_ns
        if not (self._frames or self._presences):
            return None
        # The newest frame is kept however old, so that the answer can say how old.
        start_ns = min([start_ns, *(frame.stamp_ns for frame in list(self._frames)[-1:])])
        return gather(start_ns, end_ns + 1, self._frames, self._utterances, presences=self._presences)

    def asked(self, query: Query, clock: Clock) -> tuple[Request, Limit]:
        """The request that a query makes now, and how long it may take.

        Without a deadline time stands still at the query's stamp, so that a replay decides as the robot did.
        """
        live = query.deadline_ns != -1
        clock = clock if live else ReplayClock(query.stamp_ns)
        window = self.window(query.stamp_ns, clock.now_ns())
        source = query.frame_id or query.episode_id
        return request_of(query, window, source=source), Limit(clock, query.deadline_ns if live else None)


def answered(selector: Selector, recall: Recall, query: Query, clock: Clock) -> tuple[Decision, Answer]:
    """What the selector decides on a query, and what that says to its task."""
    decision = selector.select(*recall.asked(query, clock))
    return decision, answer_of(decision, query)
