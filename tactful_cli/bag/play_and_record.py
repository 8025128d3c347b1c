"""`tactful bag play` and `record`: bags and running topics."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from norm_core.runtime.program import PROGRAM
from tactful_cli.console import remark
from tactful_cli.verb_options import BagPath

# The longest time that ROS was seen to need to discover the publishers of a topic.
_DISCOVERY_S = 3.0


def play(
    bag: BagPath,
    rate: Annotated[float, typer.Option(help="Playback speed as a multiple of the recorded one.")] = 1.0,
    clock: Annotated[
        float, typer.Option(metavar="HZ", help="Publish the bag's time on /clock this many times a second.")
    ] = 0.0,
) -> None:
    """Publish a bag's messages at the recorded pace."""
    clock_option = f" --clock {clock:g}" if clock else ""
    _name_rosbag2(
        f"ros2 bag play {bag} --rate {rate:g}{clock_option} --exclude-topics /tactful/status /diagnostics",
        "waits for subscribers, plays no health of recorded nodes, and loses no message to a slow subscriber",
    )
    _run_node("bag_player", {"bag": str(bag.resolve()), "rate": float(rate), "clock_hz": float(clock)})


def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="New folder to write; must not exist.")],
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to record; default: all.")] = None,
) -> None:
    """Record topics into a new bag until interrupted. Refuses a named topic that it cannot record."""
    _name_rosbag2(
        f"ros2 bag record -o {bag} {' '.join(['--topics', *topics] if topics else ['--all-topics'])}",
        "refuses what it cannot record, and publishes its health to up, watch and doctor",
    )
    parameters = {"bag": str(bag.resolve()), "topics": topics or ["*"], "wait_for_topics_s": _DISCOVERY_S}
    _run_node("bag_recorder", parameters)


def _name_rosbag2(command: str, difference: str) -> None:
    """Name the standard tool's equal command where it is installed, and what only ours does."""
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    if any(Path(prefix, "share/ament_index/resource_index/packages/ros2bag").is_file() for prefix in prefixes):
        remark(f"bag: rosbag2 is installed, so `{command}` does this as well; only {PROGRAM} bag {difference}")


def _run_node(node: str, parameters: dict[str, Any]) -> None:
    """Replace this process by one that runs a node."""
    # ROS reads a value as YAML; JSON is a safe subset of it.
    options = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    command = [sys.executable, "-m", "norm_nodes.node_host", node, "--autostart", "--ros-args", *options]
    os.execv(sys.executable, command)
