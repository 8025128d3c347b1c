"""The ROS API page: every node's topics, services, actions and parameters, from the nodes themselves."""

import inspect
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rclpy
import yaml
from rclpy.lifecycle import TransitionCallbackReturn

from norm_core.bags.writer import BagWriter
from norm_core.runtime.config import Config
from norm_nodes import parameters
from norm_nodes.catalogue import NODES, node_class
from norm_nodes.norm_node import NormNode

# Its own, so that the nodes made for the page disturb none that run.
PAGE_DOMAIN = 49

HEAD = """# The ROS API

Made from the nodes by `./tactful api`; do not edit it by hand. Each node is a lifecycle node in the namespace
`/tactful`, and answers the standard lifecycle and parameter services beside what stands here. A parameter is read
when the node is configured; one marked live may be changed at any time.
"""


def page() -> str:
    """The page as Markdown; rclpy must be initialised with what the nodes need to be configured."""
    return HEAD + "".join(f"{line}\n" for name in sorted(NODES) for line in _section(name))


def main() -> int:
    """Prints the page."""
    with tempfile.TemporaryDirectory() as folder:
        rclpy.init(args=["--ros-args", *needed_parameters(Path(folder))], domain_id=PAGE_DOMAIN)
        try:
            print(page(), end="")
        finally:
            rclpy.try_shutdown()
    return 0


def needed_parameters(folder: Path) -> list[str]:
    """The parameters without which some node cannot be configured, or shows not all of itself, as ROS arguments."""
    BagWriter(folder / "empty").close()
    bags = {"bag_player": folder / "empty", "bag_recorder": folder / "new"}
    path = folder / "parameters.yaml"
    needed: dict[str, dict[str, Any]] = {node: {"bag": str(bag)} for node, bag in bags.items()}
    needed["monitor"] = {"study": {"log": str(folder / "log"), "name": "page", "session": "page"}}
    tree = {f"/tactful/{node}": {"ros__parameters": values} for node, values in needed.items()}
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return ["--params-file", str(path)]


def _section(name: str) -> Iterator[str]:
    node = node_class(name)()
    try:
        if node.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            raise RuntimeError(f"{name} cannot be configured: {'; '.join(node.status().reasons)}")
        yield from ("", f"## {node.get_fully_qualified_name()}", "", inspect.getdoc(node_class(name)) or "")
        yield from ("", "| | name | type | |", "|---|---|---|---|")
        for endpoint in node.endpoints:
            yield f"| {endpoint.direction} | `{endpoint.name}` | `{endpoint.type_name}` | {endpoint.description} |"
        yield from ("", "| parameter | default | |", "|---|---|---|")
        yield from _parameter_rows(node)
        node.wind_down()
    finally:
        node.destroy_node()


def _parameter_rows(node: NormNode[Any]) -> Iterator[str]:
    model: type[Config] = node.config_model
    for name, spec in parameters.specs(model).items():
        live = " (live)" if spec.is_live else ""
        yield f"| `{name}` | `{spec.default!r}` | {spec.description}{_limits(spec.schema)}{live} |"


def _limits(schema: Mapping[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    limits += [f"one of {', '.join(schema['enum'])}"] if "enum" in schema else []
    return f" ({', '.join(limits)})" if limits else ""


if __name__ == "__main__":
    sys.exit(main())
