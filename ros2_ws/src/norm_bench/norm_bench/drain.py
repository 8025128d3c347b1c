"""Let a replay detect that nodes have processed every message: each reports its counts on request.

One request covers any number of messages, so a lockstep replay need not wait for each of them.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from norm_nodes.base.endpoint import EVENTS
from norm_nodes.base.norm_node import NormNode
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from std_msgs.msg import String

from norm_core.records.json_codec import from_json, to_json
from norm_core.records.record import record
from norm_core.records.topics import DRAIN_REPORT_TOPIC, DRAIN_REQUEST_TOPIC, full_topic
from norm_core.runtime.config import Config

C = TypeVar("C", bound=Config)


@record
class DrainReport:
    """The number of messages that a node processed and published by topic since its start, and whether it is idle."""

    token: str
    node: str
    idle: bool
    dropped: int
    processed: dict[str, int]
    published: dict[str, int]
    publisher_counts: dict[str, int]  # publishers that each subscription has discovered


class DrainClient:
    """Request reports from nodes, and store the latest of each by name."""

    def __init__(self, node: Node) -> None:
        """Advertise requests and subscribe to reports through `node`."""
        self._node = node
        self._request_count = 0
        self._report_topic = full_topic(DRAIN_REPORT_TOPIC)
        self._requests = node.create_publisher(String, full_topic(DRAIN_REQUEST_TOPIC), EVENTS)
        node.create_subscription(String, self._report_topic, self._add_report, EVENTS)
        self.replies: dict[str, DrainReport] = {}

    def has_nodes(self, count: int) -> bool:
        """Return whether `count` nodes can receive requests and reply."""
        counts = (self._requests.get_subscription_count(), self._node.count_publishers(self._report_topic))
        return min(counts) >= count

    def request(self, names: Collection[str]) -> Callable[[], bool]:
        """Request a report of the named nodes. Returns a check that is true once all have replied."""
        self._request_count += 1
        token = f"{os.getpid()}-{self._request_count}"
        self._requests.publish(String(data=token))
        return lambda: all(name in self.replies and self.replies[name].token == token for name in names)

    def _add_report(self, message: Any) -> None:
        report = from_json(DrainReport, message.data)
        self.replies[report.node] = report


class DrainReporter(NormNode[C]):
    """A node that reports on request what it has processed and published. Name it before the node's own class."""

    def __init__(self, *arguments: Any) -> None:
        self._processed: Counter[str] = Counter()
        self._subscriptions_counted: list[Subscription] = []
        super().__init__(*arguments)
        # The endpoints that every node has carry no content of a replay.
        self._bookkeeping = frozenset(endpoint.name for endpoint in self.endpoints)
        self._drain_reports = self.create_publisher(String, DRAIN_REPORT_TOPIC, EVENTS)
        self.create_subscription(String, DRAIN_REQUEST_TOPIC, self._on_drain_request, EVENTS)

    def subscribe(
        self,
        type_: Any,
        topic: str,
        callback: Callable[[Any], object],
        qos: QoSProfile,
        description: str,
        *,
        raw: bool = False,
    ) -> Any:
        """Subscribe, and count each message after its callback ends."""
        name = self.resolve_topic_name(topic)
        self._processed[name] += 0

        def call_and_count(message: Any) -> None:
            try:
                callback(message)
            finally:
                self._processed[name] += 1

        subscription = super().subscribe(type_, topic, call_and_count, qos, description, raw=raw)
        self._subscriptions_counted.append(subscription)
        return subscription

    def destroy_subscription(self, subscription: Subscription) -> bool:
        """Destroy a subscription, and no longer report its publishers."""
        if subscription in self._subscriptions_counted:
            self._subscriptions_counted.remove(subscription)
        return bool(super().destroy_subscription(subscription))

    def _on_drain_request(self, message: Any) -> None:
        # Read idleness before queuing the reply: work that a thread queued earlier then runs before it.
        idle = self.health_log.is_idle()
        self.run_later(DRAIN_REPORT_TOPIC, self._publish_drain_report, message.data, idle)

    def _publish_drain_report(self, token: str, idle: bool) -> None:
        report = DrainReport(
            token=token,
            node=self.get_fully_qualified_name(),
            idle=idle,
            dropped=sum(queue.dropped for queue in self.health_log.queues),
            processed=self._select_content(self._processed),
            published=self._select_content(self.published_by_topic),
            publisher_counts={sub.topic_name: sub.get_publisher_count() for sub in self._subscriptions_counted},
        )
        self._drain_reports.publish(String(data=to_json(report)))

    def _select_content(self, tally: Counter[str]) -> dict[str, int]:
        return {topic: count for topic, count in tally.items() if topic not in self._bookkeeping}
