"""Measure a message's round trip to another process, for `tactful doctor`."""

import json
import os
import statistics
import sys
import time
from typing import Any

import rclpy
from rclpy.node import Node
from std_msgs.msg import String

from norm_nodes.base.endpoint import EVENTS
from norm_nodes.base.executors import observer

ROUNDS = 200
PATIENCE_S = 10.0


def main() -> int:
    """With the argument `echo`, reply until stdin ends. Otherwise measure, and print the latencies as JSON."""
    with observer("roundtrip") as node:
        return _echo(node) if "echo" in sys.argv[1:] else _ask(node)


def _echo(node: Node) -> int:
    publisher = node.create_publisher(String, "tactful/roundtrip/back", EVENTS)
    node.create_subscription(String, "tactful/roundtrip/there", publisher.publish, EVENTS)
    parent = os.getppid()
    while os.getppid() == parent:
        rclpy.spin_once(node, timeout_sec=0.2)
    return 0


def _ask(node: Node) -> int:
    returned: list[str] = []
    publisher = node.create_publisher(String, "tactful/roundtrip/there", EVENTS)

    def on_message(message: Any) -> None:
        returned.append(message.data)

    node.create_subscription(String, "tactful/roundtrip/back", on_message, EVENTS)
    deadline_s = time.monotonic() + PATIENCE_S
    while not (publisher.get_subscription_count() and node.count_publishers("tactful/roundtrip/back")):
        if time.monotonic() > deadline_s:
            return _report({"error": f"no other process was discovered in {PATIENCE_S:.0f} s"})
        rclpy.spin_once(node, timeout_sec=0.05)
    took_ms = []
    for index in range(ROUNDS):
        token = f"{os.getpid()}-{index}"
        sent_ns = time.perf_counter_ns()
        publisher.publish(String(data=token))
        while token not in returned[-1:]:
            if time.monotonic() > deadline_s:
                return _report({"error": f"message {index} of {ROUNDS} did not come back in {PATIENCE_S:.0f} s"})
            rclpy.spin_once(node, timeout_sec=0.5)
        took_ms.append((time.perf_counter_ns() - sent_ns) / 1e6)
    p99_ms = statistics.quantiles(took_ms, n=100)[98]
    return _report({"rounds": ROUNDS, "median_ms": statistics.median(took_ms), "p99_ms": p99_ms})


def _report(result: dict[str, object]) -> int:
    print(json.dumps(result))
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main())
