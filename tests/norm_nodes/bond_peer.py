"""The lifecycle manager's side of a bond, with bondpy where it is installed: `python -m tests.norm_nodes.bond_peer ID`.

It prints when the bond is formed and broken, and breaks it at the end of its input.
"""

import sys
import threading
import time
import uuid
from functools import partial
from importlib import import_module
from typing import Any

import rclpy
from rclpy.node import Node

from tests.patience import PATIENCE_S

STATUS = import_module("bond.msg").Status


class Peer:
    """The states of bond_core: waiting for the sister, alive, awaiting the sister's death, dead."""

    connect_timeout, heartbeat_timeout, heartbeat_period = 10.0, 4.0, 1.0

    def __init__(self, node: Node, topic: str, bond_id: str, on_broken: Any = None, on_formed: Any = None) -> None:
        self._node, self._id, self._instance = node, bond_id, str(uuid.uuid4())
        self._on_broken, self._on_formed = on_broken, on_formed
        self._publisher = node.create_publisher(STATUS, topic, 1)
        self._topic, self._state, self._sister = topic, "waiting", ""

    def start(self) -> None:
        self._node.create_subscription(STATUS, self._topic, self._receive, 100)  # as bondcpp
        self._node.create_timer(self.heartbeat_period, self._beat)

    def break_bond(self) -> None:
        self._state = "dying" if self._state == "alive" else "dead"
        self._publish(active=False)

    def _beat(self) -> None:
        if self._state == "alive" and time.monotonic() > self._heard_s + self.heartbeat_timeout:
            self._die()
        if self._state != "dead":
            self._publish(active=self._state != "dying")

    def _receive(self, status: Any) -> None:
        if status.id != self._id or status.instance_id == self._instance:
            return
        self._sister = self._sister or status.instance_id
        assert status.instance_id == self._sister, "more than two locations are trying to use a single bond"
        self._heard_s = time.monotonic()
        if status.active and self._state == "waiting":
            self._state = "alive"
            self._on_formed()
        elif not status.active and self._state != "dead":
            self._die()
            self._publish(active=False)

    def _die(self) -> None:
        self._state = "dead"
        self._on_broken()

    def _publish(self, *, active: bool) -> None:
        status = STATUS(id=self._id, instance_id=self._instance, active=active)
        status.heartbeat_timeout, status.heartbeat_period = self.heartbeat_timeout, self.heartbeat_period
        self._publisher.publish(status)


def find_bond_class() -> Any:
    """Return the class of bondpy, or ours where it is not installed."""
    try:
        return import_module("bondpy.bondpy").Bond
    except ImportError:
        return Peer


def main() -> None:
    bond_id = sys.argv[1]
    timeout_s = float(sys.argv[2])
    rclpy.init()
    node = rclpy.create_node("lifecycle_manager", namespace="tactful")
    on_broken, on_formed = (partial(print, event, flush=True) for event in ("broken", "formed"))
    bond = find_bond_class()(node, "bond", bond_id, on_broken, on_formed)
    bond.connect_timeout, bond.heartbeat_timeout = PATIENCE_S, timeout_s
    bond.heartbeat_period = 0.1
    bond.start()
    ended = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=await_end, daemon=True).start()
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.05)
    bond.break_bond()
    deadline_s = time.monotonic() + 2.0  # as long as the other side may take to acknowledge
    while time.monotonic() < deadline_s:
        rclpy.spin_once(node, timeout_sec=0.05)
    rclpy.shutdown()


if __name__ == "__main__":
    main()
