"""Refuse requests to a server that cannot be reached, until a probe reaches it again."""

import time
from collections.abc import Callable
from threading import Lock

from norm_core.engines.engine_health import ServerStatus

# Pauses between probes: the first, and the longest after doubling.
_FIRST_S, _LONGEST_S = 0.5, 15.0


class CircuitBreaker:
    """Closed while the server can be reached, open after a failure to connect. Any thread may call."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._outage = ""
        self._refused = 0
        self._pause_s = _FIRST_S
        self._due_s = 0.0

    @property
    def status(self) -> ServerStatus:
        """The state of the moment, and the requests that were refused so far."""
        with self._lock:
            return ServerStatus(outage=self._outage, requests_refused=self._refused)

    def open(self, outage: str) -> bool:
        """Refuse requests from now on, and make the next probe due later than the last; return whether this is new."""
        with self._lock:
            is_new = not self._outage
            self._outage = outage
            self._pause_s = _FIRST_S if is_new else min(2 * self._pause_s, _LONGEST_S)
            self._due_s = self._now_s() + self._pause_s
            return is_new

    def close(self) -> None:
        """Let requests pass."""
        with self._lock:
            self._outage = ""

    def refuse(self) -> str:
        """Return why a request is refused, and count it; return an empty text if it may pass."""
        with self._lock:
            self._refused += bool(self._outage)
            return self._outage

    def until_probe_s(self) -> float | None:
        """Return the seconds until the next probe is due; None while no probe is needed."""
        with self._lock:
            return max(0.0, self._due_s - self._now_s()) if self._outage else None
