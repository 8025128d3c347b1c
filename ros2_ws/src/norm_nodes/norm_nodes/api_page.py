"""The ROS API page: every node's topics, services, actions and parameters, from the nodes themselves."""

import inspect
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rclpy

from norm_core.bags.writer import BagWriter
from norm_nodes import parameters
from norm_nodes.catalogue import NODES
from norm_nodes.norm_node import NormNode

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
        rclpy.init(args=["--ros-args", *needed_parameters(Path(folder))])
        try:
            print(page(), end="")
        finally:
            rclpy.try_shutdown()
    return 0


def needed_parameters(folder: Path) -> list[str]:
    """The parameters without which some node cannot be configured, as ROS arguments."""
    BagWriter(folder / "empty").close()
    given = {"bag_player:bag": folder / "empty", "bag_recorder:bag": folder / "new"}
    return [part for name, value in given.items() for part in ("-p", f"{name}:={value}")]


def _section(name: str) -> Iterator[str]:
    node = NODES[name]()
    try:
        node.trigger_configure()
        yield from ("", f"## {node.get_fully_qualified_name()}", "", inspect.getdoc(NODES[name]) or "")
        yield from ("", "| | name | type | |", "|---|---|---|---|")
        for endpoint in node.endpoints:
            yield f"| {endpoint.direction} | `{endpoint.name}` | `{endpoint.type_name}` | {endpoint.description} |"
        yield from ("", "| parameter | default | |", "|---|---|---|")
        yield from _parameter_rows(node)
        node.wind_down()
    finally:
        node.destroy_node()


def _parameter_rows(node: NormNode[Any]) -> Iterator[str]:
    schema = node.config_model.model_json_schema()["properties"]
    for name, field in node.config_model.model_fields.items():
        default = schema[name].get("default")
        live = " (live)" if parameters.is_live(field) else ""
        yield f"| `{name}` | `{default!r}` | {field.description}{_limits(schema[name])}{live} |"


def _limits(schema: dict[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema]
    limits += [f"one of {', '.join(schema['enum'])}"] if "enum" in schema else []
    return f" ({', '.join(limits)})" if limits else ""


if __name__ == "__main__":
    sys.exit(main())
