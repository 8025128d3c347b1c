"""The bond by which a lifecycle manager such as Nav2's notices that a node has died: one side of ROS's bond_core."""

import time
import uuid
from typing import Any

from rclpy.duration import Duration

from norm_nodes.base.endpoint import EVENTS
from norm_nodes.base.endpoint_node import EndpointNode

BOND_TYPE = "bond/msg/Status"
# As in the nodes of Nav2: a relative name, so that the manager's namespace is that of the nodes.
BOND_TOPIC = "bond"
HEARTBEAT_PERIOD_S = 0.1
HEARTBEAT_TIMEOUT_S = 4.0
# How long an active node waits for the manager before its status says so.
CONNECT_TIMEOUT_S = 10.0
ACK_TIMEOUT = Duration(seconds=0.1)


class Bond:
    """Heartbeats from activation to deactivation, for the one other side that has the same id: the node's name.

    A bond that the other side breaks, or that it leaves silent, stays broken until the next activation.
    """

    def __init__(self, node: EndpointNode) -> None:
        """Advertise and subscribe. Raises ConfigError without the package bond."""
        self._node, self._id = node, node.get_name()
        self._class = node.require_class(BOND_TYPE, "bond")
        self._publisher = node.advertise(self._class, BOND_TOPIC, EVENTS, "that the node lives, if bond is true")
        node.subscribe(self._class, BOND_TOPIC, self._receive, EVENTS, "that the lifecycle manager lives")
        node.repeat(HEARTBEAT_PERIOD_S, self._beat)
        node.on_release(self.break_off)
        self._is_alive = False
        self._instance_id = str(uuid.uuid4())
        self._sister_id = ""  # of the manager's side

    def start(self) -> None:
        """Begin a new bond."""
        self._former_id, self._sister_id = self._sister_id, ""  # of the former, messages may still come
        self._is_alive, self._due_s = True, time.monotonic() + CONNECT_TIMEOUT_S
        self._publish()

    def break_off(self) -> None:
        """End the bond, so that the manager need not wait for a heartbeat."""
        self._state("")
        if self._is_alive:
            self._is_alive = False
            self._publish()
            self._publisher.wait_for_all_acked(ACK_TIMEOUT)  # as the node may end now

    def _beat(self) -> None:
        if not self._is_alive:
            return
        if time.monotonic() > self._due_s:
            if self._sister_id:
                self._die("is silent")
                return
            remedy = f"start one in this namespace with {self._id} among its node_names, or set bond to false"
            self._state(f"no lifecycle manager answers the bond of {self._id}; {remedy}")
        self._publish()

    def _receive(self, status: Any) -> None:
        if not self._is_alive or status.id != self._id:
            return
        if status.instance_id in {self._instance_id, self._former_id}:
            return
        if self._sister_id not in {"", status.instance_id}:
            return  # of a third side, which bond_core ignores too
        if status.active:
            self._sister_id = status.instance_id
            self._due_s = time.monotonic() + HEARTBEAT_TIMEOUT_S
            self._state("")
        elif self._sister_id:
            self._die("broke it")
            self._publish()

    def _die(self, why: str) -> None:
        self._is_alive = False
        remedy = f"let it deactivate and activate {self._id}"
        self._state(f"the bond of {self._id} is broken, because the lifecycle manager {why}; {remedy}")

    def _state(self, problem: str) -> None:
        self._node.health_log.state_issue("bond", f"{self._publisher.topic_name}: {problem}" if problem else "")

    def _publish(self) -> None:
        status = self._class(
            id=self._id,
            instance_id=self._instance_id,
            active=self._is_alive,
            heartbeat_timeout=HEARTBEAT_TIMEOUT_S,
            heartbeat_period=HEARTBEAT_PERIOD_S,
        )
        status.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(status)
