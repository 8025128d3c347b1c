"""`tactful nodes`: runs nodes in this terminal until interrupted."""

import os
import sys
from typing import Annotated

import typer


def nodes(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="bag_player, bag_recorder, camera; several share one process.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Leave them unconfigured, for a launch file or an operator to drive.")
    ] = False,
    executor: Annotated[str, typer.Option(help="How callbacks are run: events or single.")] = "events",
) -> None:
    """Run nodes here until interrupted. Append --ros-args and what follows it for parameters and remappings."""
    command = [sys.executable, "-m", "norm_nodes.host", *names, "--executor", executor]
    command += [] if wait else ["--autostart"]
    os.execv(sys.executable, [*command, *context.args])
