"""Whether several publishers send on one topic. DDS lists one that was killed for twenty seconds more."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

RECENT_S = 3.0


class Senders:
    """Take the numbers that each publisher gives its messages: those of one only rise, and fall once if it restarts."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._last = -1
        self._fell_s: deque[float] = deque(maxlen=2)

    def take(self, info: Mapping[str, Any]) -> None:
        """Take what rclpy tells of a message. Without a number, the list of DDS has to be believed."""
        number = info["publication_sequence_number"] or 0
        if number <= self._last:
            self._fell_s.append(self._now_s())
        self._last = number

    def are_several(self) -> bool:
        """Whether several have sent of late."""
        return len(self._fell_s) == 2 and self._now_s() - self._fell_s[0] < RECENT_S
