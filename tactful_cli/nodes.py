"""`tactful nodes`: run nodes in this terminal until interrupted."""

import os
import sys
from typing import Annotated

import typer

from tactful_cli.verb import single

app = single(ignore_unknown_options=True, allow_extra_args=True)


@app.command()
def nodes(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(help="Nodes to run in one process: bag_player, camera, ears, people, monitor, selector ..."),
    ],
    wait: Annotated[
        bool, typer.Option("--wait", help="Leave the nodes unconfigured, for a launch file or an operator.")
    ] = False,
    executor: Annotated[str, typer.Option(help="rclpy executor: events or single.")] = "events",
) -> None:
    """Run nodes in one process until interrupted. Put parameters and remappings after --ros-args."""
    options = ["--executor", executor, *([] if wait else ["--autostart"])]
    # Our options come first: ROS takes everything after --ros-args.
    os.execv(sys.executable, [sys.executable, "-m", "norm_nodes.node_host", *options, *names, *context.args])
