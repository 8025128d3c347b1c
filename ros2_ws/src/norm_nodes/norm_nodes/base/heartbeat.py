"""The heartbeat of a node: its status once a second, also as ROS diagnostics, and the heartbeats of others."""

import math
import platform
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.duration import Duration

from norm_core.health.node_watch import NodeWatch
from norm_core.records.messages import MessageError
from norm_core.records.stamps import join_stamp
from norm_core.records.status import Health, MonitorStatus
from norm_core.records.topics import DIAGNOSTICS_TOPIC, STATUS_TOPIC
from norm_nodes.base.convert import from_ros, to_ros
from norm_nodes.base.endpoint import DIAGNOSTICS_QOS, HEARTBEAT_S, STATUS_QOS
from norm_nodes.base.endpoint_node import EndpointNode

# How long the status states a second node of the same name after its latest heartbeat.
DUPLICATE_FORGOTTEN_S = 3 * HEARTBEAT_S
# How long a node that ends waits for its last heartbeat to arrive.
LAST_HEARTBEAT_TIMEOUT = Duration(seconds=1)
# Number of heartbeats for which a node waits for /clock without a complaint.
CLOCK_AWAITED_BEATS = 5
NO_CLOCK = "time: use_sim_time is true, and no /clock yet; start what publishes it, or set use_sim_time to false"

_LEVELS = {
    Health.OK: DiagnosticStatus.OK,
    Health.DEGRADED: DiagnosticStatus.WARN,
    Health.STALE: DiagnosticStatus.STALE,
    Health.FAILED: DiagnosticStatus.ERROR,
}


class Heartbeat:
    """Publish the status of a node, and follow the statuses of the nodes beside it."""

    def __init__(self, node: EndpointNode, read_status: Callable[[], MonitorStatus]) -> None:
        """Advertise and subscribe for as long as the node lives."""
        self._node = node
        self._read_status = read_status
        self.node_watch = NodeWatch()
        self.instance_id = uuid.uuid4().hex
        self.started_ns = time.time_ns()
        self.superseded_by: str | None = None  # why this node must end if an older one has its name
        self._duplicate_seen_s = -math.inf
        self._beats_at_zero = 0  # heartbeats since the clock last showed a time
        self._statuses = node.advertise(MonitorStatus, STATUS_TOPIC, STATUS_QOS, "the node's health, once a second")
        self._diagnostics = node.advertise(
            DiagnosticArray, DIAGNOSTICS_TOPIC, DIAGNOSTICS_QOS, "the health, for standard tools"
        )
        node.subscribe(
            MonitorStatus,
            STATUS_TOPIC,
            self._receive,
            STATUS_QOS,
            "which nodes are active, and whether two share a name",
        )
        # `repeat` keeps the heartbeat running while simulated time does not advance.
        node.repeat(HEARTBEAT_S, self.beat)

    def beat(self) -> None:
        """Publish the status and the diagnostics once."""
        node = self._node
        if not rclpy.ok(context=node.context):
            return
        if time.monotonic() > self._duplicate_seen_s + DUPLICATE_FORGOTTEN_S:
            node.health_log.clear_issue("duplicate_node")
        self._beats_at_zero = 0 if node.clock.now_ns() else self._beats_at_zero + 1
        node.health_log.state_issue("clock", NO_CLOCK if self._beats_at_zero > CLOCK_AWAITED_BEATS else "")
        status = self._read_status()
        self.node_watch.add_heartbeat(status)
        self._statuses.publish(to_ros(status))
        diagnostics = make_diagnostics(status)
        diagnostics.header.stamp = node.get_clock().now().to_msg()
        self._diagnostics.publish(diagnostics)

    def send_last(self) -> None:
        """Publish the status once more, and wait until it arrives, as it would be lost with the node."""
        self.beat()
        if rclpy.ok(context=self._node.context):
            self._statuses.wait_for_all_acked(LAST_HEARTBEAT_TIMEOUT)

    def _receive(self, message: Any) -> None:
        if message.instance_id == self.instance_id or not self._is_published_by(message.node):
            return
        with suppress(MessageError):  # of another version of Tactful
            self.node_watch.add_heartbeat(from_ros(MonitorStatus, message))
        if message.node != self._node.get_fully_qualified_name():
            return
        self._duplicate_seen_s = time.monotonic()
        self._node.health_log.count("duplicate_node_heartbeats")
        advice = f"{message.node}: another node of this name runs on this ROS domain; stop one, or set ROS_DOMAIN_ID"
        started_ns = join_stamp(message.started.sec, message.started.nanosec)
        if (started_ns, message.instance_id) < (self.started_ns, self.instance_id):
            self.superseded_by = advice
        else:
            self._node.health_log.raise_issue("duplicate_node", Health.DEGRADED, advice)

    def _is_published_by(self, node: str) -> bool:
        """Return whether another node of this name publishes statuses; a player repeats those of a recording."""
        names = [
            f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
            for publisher in self._node.get_publishers_info_by_topic(STATUS_TOPIC)
        ]
        return names.count(node) > (node == self._node.get_fully_qualified_name())


def make_diagnostics(status: MonitorStatus) -> DiagnosticArray:
    """Make the message about the health for standard tools, without a stamp; keys stay the same at each start."""
    counts = {counter.name: counter.count for counter in status.counters}
    counts |= {f"{queue.name}_dropped": queue.dropped for queue in status.queues}
    values = [KeyValue(key=name, value=str(count)) for name, count in counts.items()]
    return DiagnosticArray(
        status=[
            DiagnosticStatus(
                level=_LEVELS[status.health],
                name=status.node.removeprefix("/"),
                message="; ".join(status.reasons) or status.state.value,
                hardware_id=platform.node(),
                values=values,
            )
        ]
    )
