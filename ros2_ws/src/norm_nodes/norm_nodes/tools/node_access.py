"""Print how the nodes that the command line names use the graph, as JSON."""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import rclpy
from rclpy.lifecycle import TransitionCallbackReturn

from norm_core.bags.writer import BagWriter
from norm_nodes.base.endpoint import Direction
from norm_nodes.base.norm_node import NormNode
from norm_nodes.catalogue import import_node_class

# A domain of its own, so that the nodes made here disturb no running ones.
DOMAIN = 49


def list_access(node: NormNode[Any]) -> dict[str, list[str]]:
    """List the names that a node uses, by what it does with them."""
    return {
        "publish": [publisher.topic_name for publisher in node.publishers],
        "subscribe": [subscription.topic_name for subscription in node.subscriptions],
        "reply": [service.service_name for service in node.services],
        "request": [client.service_name for client in node.clients],
        "execute": [endpoint.name for endpoint in node.endpoints if endpoint.direction is Direction.ACTS],
    }


def configure_nodes(names: Iterable[str]) -> Iterator[NormNode[Any]]:
    """Configure each node in turn with all endpoints, and destroy it once it is described."""
    with tempfile.TemporaryDirectory() as folder:
        BagWriter(Path(folder, "empty")).close()
        needed: dict[str, Any] = {"bag_player": {"bag": f"{folder}/empty"}, "bag_recorder": {"bag": f"{folder}/new"}}
        needed["monitor"] = {"study": {"log": f"{folder}/log", "name": "page", "session": "page"}}
        sections = {f"/tactful/{node}": {"ros__parameters": values} for node, values in needed.items()}
        (file := Path(folder, "parameters.yaml")).write_text(json.dumps(sections), encoding="utf-8")
        rclpy.init(args=["--ros-args", "--params-file", str(file)], domain_id=DOMAIN)
        try:
            for name in sorted(names):
                node = import_node_class(name)()
                try:
                    if node.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
                        raise RuntimeError(f"{name} cannot be configured: {'; '.join(node.status().reasons)}")
                    yield node
                    node.wind_down()
                finally:
                    node.destroy_node()
        finally:
            rclpy.try_shutdown()


if __name__ == "__main__":
    print(json.dumps({node.get_name(): list_access(node) for node in configure_nodes(sys.argv[1:])}))
