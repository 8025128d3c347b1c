"""`tactful param`: read and change parameters of a running node."""

import json
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import out
from tactful_cli.up.profile import checked_namespace, get_parameters, node_namespace, set_parameter
from tactful_cli.verb import single

app = single()


@app.command()
def param(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Such as monitor.")],
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Such as fusion.muted; all without it.")] = "",
    value: Annotated[
        str | None, typer.Argument(metavar="[VALUE]", help="As in YAML, such as quiet or [response_delay].")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the robot, where several share a ROS domain.")] = "",
) -> None:
    """Print parameters of a running node as YAML, or set one as `ros2 param set` does.

    Those marked live in docs/reference/parameters.md change at once.
    """
    full_name = f"{node_namespace(checked_namespace(namespace, 'param'))}/{node.rpartition('/')[2]}"
    if value is not None:
        before, after = set_parameter(full_name, name, value)
        lines = {name: f"{_yaml(before)} -> {_yaml(after)}"}
    else:
        lines = {key: _yaml(held) for key, held in get_parameters(full_name, name).items()}
        if name and name not in lines:
            raise TactfulError(f"param: {node}: has no parameter {name}; leave it out to see all")
    for key, line in lines.items():
        out.print(f"{key}: {line}", markup=False, highlight=False)


def _yaml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool | None) or value == "" else str(value)
