"""How a replay learns that nodes have dealt with all it sent: each tells on request what it took, gave and still does.

One exchange asks about any number of messages, so that a lockstep replay need not await each of them.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from rclpy.publisher import Publisher

from norm_core.record import record

ASK_TOPIC, TOLD_TOPIC = "settle", "settled"
# Nothing more is to come: what is under way ends here, which live only the clock could tell.
ENDED_TOPIC = "recording_ended"


@record
class Settled:
    """What one node took and gave by topic since it was made, and whether it had nothing left to do."""

    token: str
    node: str
    idle: bool
    dropped: int
    taken: dict[str, int]
    given: dict[str, int]
    heard_from: dict[str, int]  # publishers that each subscription has found: what others sent before is lost


class CountedPublisher(Publisher):
    """A publisher that adds to a tally with each message."""

    def counts(self, tally: Counter[str]) -> None:
        """Where to count from now on."""
        self._tally, self._name = tally, self.topic_name
        tally[self._name] += 0

    def publish(self, msg: Any) -> None:
        super().publish(msg)
        self._tally[self._name] += 1


def counted(tally: Counter[str], topic: str, callback: Callable[[Any], None]) -> Callable[[Any], None]:
    """The callback of a subscription to topic, with each message counted once it was dealt with."""
    tally[topic] += 0

    def take(message: Any) -> None:
        callback(message)
        tally[topic] += 1

    return take
