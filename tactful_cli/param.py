"""`tactful param`: read and change parameters of a running node."""

import json
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import out
from tactful_cli.up.profile import checked_namespace, node_namespace
from tactful_cli.up.ros_tools import get_parameters, set_parameter
from tactful_cli.verb import group

app = group("Parameters of the running nodes.")

_Node = Annotated[str, typer.Argument(metavar="NODE", help="Such as monitor.")]
_Namespace = Annotated[str, typer.Option(help="Namespace of the robot, where several share a ROS domain.")]


@app.callback()
def param() -> None:
    """Parameters of the running nodes."""


@app.command("set")
def set_value(
    node: _Node,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as fusion.sensitivity.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As in YAML, such as quiet or [response_delay].")],
    namespace: _Namespace = "",
) -> None:
    """Set a parameter as `ros2 param set` does; those marked live in docs/reference/parameters.md change at once."""
    before, after = set_parameter(_full_name(node, namespace), name, value)
    out.print(f"{name}: {_yaml(before)} -> {_yaml(after)}", markup=False, highlight=False, soft_wrap=True)


@app.command("get")
def get_value(
    node: _Node,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Such as fusion.muted; all without it.")] = "",
    namespace: _Namespace = "",
) -> None:
    """Print a parameter, or all, as YAML."""
    values = get_parameters(_full_name(node, namespace), name)
    if name and name not in values:
        raise TactfulError(f"param: {node}: has no parameter {name}; leave it out to see all")
    for each, value in values.items():
        out.print(f"{each}: {_yaml(value)}", markup=False, highlight=False, soft_wrap=True)


def _full_name(node: str, namespace: str) -> str:
    return f"{node_namespace(checked_namespace(namespace, 'param'))}/{node.rpartition('/')[2]}"


def _yaml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool | None) or value == "" else str(value)
