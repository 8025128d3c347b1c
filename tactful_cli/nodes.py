"""`tactful nodes`: runs nodes in this terminal until interrupted."""

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
        typer.Argument(help="bag_player, camera, ears, people, monitor, selector ...; several share one process."),
    ],
    wait: Annotated[
        bool, typer.Option("--wait", help="Leave them unconfigured, for a launch file or an operator to drive.")
    ] = False,
    executor: Annotated[str, typer.Option(help="How callbacks are run: events or single.")] = "events",
) -> None:
    """Run nodes here until interrupted. Append --ros-args and what follows it for parameters and remappings."""
    options = ["--executor", executor, *([] if wait else ["--autostart"])]
    # The options stand first: after --ros-args everything is for ROS.
    os.execv(sys.executable, [sys.executable, "-m", "norm_nodes.node_host", *options, *names, *context.args])
