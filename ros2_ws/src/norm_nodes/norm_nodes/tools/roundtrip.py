"""Send a message to another process and back, for `tactful doctor`."""

import os
import sys
import time

import rclpy
from rclpy.node import Node
from std_msgs.msg import Empty

from norm_nodes.base.endpoint import EVENTS
from norm_nodes.base.executors import open_observer

TIMEOUT_S = 10.0
SPIN_S = 0.2
OUTWARD_TOPIC = "tactful/roundtrip/there"
RETURN_TOPIC = "tactful/roundtrip/back"


def main() -> int:
    """Reply until the parent ends, with the argument `echo`; otherwise print why no message came back, if none did."""
    with open_observer("roundtrip") as node:
        return _echo(node) if "echo" in sys.argv[1:] else _await_reply(node)


def _echo(node: Node) -> int:
    publisher = node.create_publisher(Empty, RETURN_TOPIC, EVENTS)
    node.create_subscription(Empty, OUTWARD_TOPIC, publisher.publish, EVENTS)
    parent = os.getppid()
    while os.getppid() == parent:
        rclpy.spin_once(node, timeout_sec=SPIN_S)
    return 0


def _await_reply(node: Node) -> int:
    replies: list[Empty] = []
    publisher = node.create_publisher(Empty, OUTWARD_TOPIC, EVENTS)
    node.create_subscription(Empty, RETURN_TOPIC, replies.append, EVENTS)
    deadline_s = time.monotonic() + TIMEOUT_S
    while not replies:
        if time.monotonic() > deadline_s:
            is_discovered = publisher.get_subscription_count() and node.count_publishers(RETURN_TOPIC)
            problem = "no message came back" if is_discovered else "no other process was discovered"
            print(f"{problem} in {TIMEOUT_S:.0f} s")
            return 1
        publisher.publish(Empty())  # repeatedly: messages before the discovery are lost
        rclpy.spin_once(node, timeout_sec=SPIN_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
