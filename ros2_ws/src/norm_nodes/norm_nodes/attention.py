"""Whether a major error is going on."""

import math
from threading import Lock

from norm_core.records.flag import FlagState, Polarity, Severity, SocialFlag

# How long attention stays raised after an error ends.
ATTENTION_S = 3.0
# A monitor that runs for days forgets earlier events.
MAX_EVENTS = 1000


class Attention:
    """Attention, raised once for each major error until shortly after its end. Callable from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._until_s: dict[str, float] = {}  # by event, of those that raised it

    def update(self, flag: SocialFlag, now_s: float) -> None:
        """Apply a state of a flag. Only its first state as a major error, or one that goes on, raises attention."""
        with self._lock:
            until_s = self._until_s.pop(flag.event_id, None)
            if not _is_major_error(flag):
                until_s = None if until_s is None else -math.inf
            elif flag.offset_ns is None:
                until_s = math.inf
            elif until_s is not None:
                until_s = min(until_s, now_s + ATTENTION_S)
            elif flag.state is not FlagState.CLOSED:  # which comes long after the event
                until_s = now_s + ATTENTION_S
            if until_s is not None:
                self._until_s[flag.event_id] = until_s
            if len(self._until_s) > MAX_EVENTS:
                del self._until_s[next(iter(self._until_s))]

    def is_raised(self, now_s: float) -> bool:
        """Return whether a major error is going on, or has just ended."""
        with self._lock:
            return any(now_s < until_s for until_s in self._until_s.values())


def _is_major_error(flag: SocialFlag) -> bool:
    is_severe = flag.polarity is Polarity.ERROR and flag.severity in {Severity.MAJOR, Severity.SEVERE}
    return is_severe and flag.state is not FlagState.WITHDRAWN
