"""Print the nodes, topics, services and actions on the ROS domain as JSON."""

import json
import sys
import time
from typing import Any

from rclpy.action import get_action_names_and_types
from rclpy.node import Node

from norm_nodes.executors import observer

SETTLE_S = 1.0


def list_graph(node: Node) -> dict[str, Any]:
    """List the graph that `node` sees now, with the types of topics, services and actions."""
    return {
        "nodes": sorted(f"{space.rstrip('/')}/{name}" for name, space in node.get_node_names_and_namespaces()),
        "topics": dict(sorted(node.get_topic_names_and_types())),
        "services": dict(sorted(node.get_service_names_and_types())),
        "actions": dict(sorted(get_action_names_and_types(node))),
    }


def main() -> int:
    """Print the graph once it is stable for one second, or after four seconds."""
    with observer("graph_observer") as node:
        seen, stood_still_since, deadline_s = list_graph(node), time.monotonic(), time.monotonic() + 4.0
        while time.monotonic() < min(deadline_s, stood_still_since + SETTLE_S):
            time.sleep(0.05)
            now = list_graph(node)
            if now != seen:
                seen, stood_still_since = now, time.monotonic()
        seen["nodes"].remove(f"/{node.get_name()}")
        print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
