"""Let a replay detect that nodes have processed every message: each reports its counts on request.

One request covers any number of messages, so a lockstep replay need not wait for each of them.
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

DRAIN_REQUEST_TOPIC, DRAIN_REPORT_TOPIC = "drain_request", "drain_report"
# The parameter without which a node has neither topic.
DRAIN_REPORTS = "drain_reports"
# The recording is over: the senses finish open speech. Live, only a timeout can show this.
RECORDING_ENDED_TOPIC = "recording_ended"
# The senses have published everything from the recording. The monitor and the selector finish what is open.
SENSES_ENDED_TOPIC = "input_ended"


@record
class DrainReport:
    """The number of messages one node took and published by topic since it was created, and whether it is idle."""

    token: str
    node: str
    idle: bool
    dropped: int
    processed: dict[str, int]
    published: dict[str, int]
    publisher_counts: dict[str, int]  # publishers that each subscription has discovered


class DrainClient:
    """Ask every node for its report, and keep the last reply of each by name."""

    def __init__(self, node: Node) -> None:
        """Advertise requests and subscribe to reports through `node`."""
        self._node, self._request_count = node, 0
        self._report_topic = f"/tactful/{DRAIN_REPORT_TOPIC}"
        self._requests = node.create_publisher(String, f"/tactful/{DRAIN_REQUEST_TOPIC}", EVENTS)
        node.create_subscription(String, self._report_topic, self._on_report, EVENTS)
        self.replies: dict[str, DrainReport] = {}

    def has_nodes(self, count: int) -> bool:
        """Whether `count` nodes can receive requests and reply."""
        counts = (self._requests.get_subscription_count(), self._node.count_publishers(self._report_topic))
        return all(number >= count for number in counts)

    def request(self, names: Collection[str]) -> Callable[[], bool]:
        """Request a report of the named nodes. Returns a check that is true once all have replied."""
        self._request_count += 1
        token = f"{os.getpid()}-{self._request_count}"
        self._requests.publish(String(data=token))
        return lambda: all(name in self.replies and self.replies[name].token == token for name in names)

    def _on_report(self, message: Any) -> None:
        report = from_json(DrainReport, message.data)
        self.replies[report.node] = report


class CountedPublisher(Publisher):
    """A publisher that counts its messages in a tally."""

    def set_tally(self, tally: Counter[str]) -> None:
        """Set the tally to count in from now on."""
        self._tally, self._name = tally, self.topic_name
        tally[self._name] += 0

    def publish(self, msg: Any) -> None:
        """Count the message and publish it: whoever hears it then finds it counted."""
        self._tally[self._name] += 1
        super().publish(msg)


def count_processed(tally: Counter[str], topic: str, callback: Callable[[Any], object]) -> Callable[[Any], None]:
    """Wrap a subscription's callback so that each message is counted after the callback ends."""
    tally[topic] += 0

    def call_and_count(message: Any) -> None:
        try:
            callback(message)
        finally:
            tally[topic] += 1

    return call_and_count
