"""How a replay learns that nodes have dealt with all it sent: each tells on request what it took, gave and still does.

One exchange asks about any number of messages, so that a lockstep replay need not await each of them.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from norm_core.records.json_codec import from_json
from norm_core.records.record import record
from norm_nodes.endpoint import EVENTS

ASK_TOPIC, TOLD_TOPIC = "settle", "settled"
# Nothing more is to come: what is under way ends here, which live only the clock could tell.
ENDED_TOPIC = "recording_ended"
# The senses have given all that they made of the recording: whoever decides by it closes what is open.
INPUT_ENDED_TOPIC = "input_ended"


@record
class DrainReport:
    """What one node took and gave by topic since it was made, and whether it had nothing left to do."""

    token: str
    node: str
    idle: bool
    dropped: int
    taken: dict[str, int]
    given: dict[str, int]
    heard_from: dict[str, int]  # publishers that each subscription has found: what others sent before is lost


class DrainClient:
    """Asks all nodes, and keeps the last reply of each by its name."""

    def __init__(self, node: Node) -> None:
        self._node, self._asked = node, 0
        self._told_topic = f"/tactful/{TOLD_TOPIC}"
        self._ask = node.create_publisher(String, f"/tactful/{ASK_TOPIC}", EVENTS)
        node.create_subscription(String, self._told_topic, self._on_told, EVENTS)
        self.replies: dict[str, DrainReport] = {}

    def is_found_by(self, count: int) -> bool:
        """Whether so many nodes can be asked, and can reply."""
        found = (self._ask.get_subscription_count(), self._node.count_publishers(self._told_topic))
        return all(number >= count for number in found)

    def ask(self, names: Collection[str]) -> Callable[[], bool]:
        """Tells, when called, whether the nodes of these names have replied."""
        self._asked += 1
        token = f"{os.getpid()}-{self._asked}"
        self._ask.publish(String(data=token))
        return lambda: all(name in self.replies and self.replies[name].token == token for name in names)

    def _on_told(self, message: Any) -> None:
        settled = from_json(DrainReport, message.data)
        self.replies[settled.node] = settled


class CountedPublisher(Publisher):
    """A publisher that adds to a tally with each message."""

    def counts(self, tally: Counter[str]) -> None:
        """Where to count from now on."""
        self._tally, self._name = tally, self.topic_name
        tally[self._name] += 0

    def publish(self, msg: Any) -> None:
        super().publish(msg)
        self._tally[self._name] += 1


def count_taken(tally: Counter[str], topic: str, callback: Callable[[Any], object]) -> Callable[[Any], None]:
    """The callback of a subscription to topic, with each message counted once it was dealt with."""
    tally[topic] += 0

    def take(message: Any) -> None:
        callback(message)
        tally[topic] += 1

    return take
