"""`tactful bag`: what a recorded bag holds; recording and playing one without rosbag2."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagReader
from norm_core.time import ns_to_s
from tactful_cli.console import out, print_json

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Look into, record and play rosbag2 folders.",
)

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag.")]


@app.command()
def info(bag: BagPath, as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False) -> None:
    """Show a bag's topics, types, counts and length."""
    with BagReader(bag) as reader:
        topics, bounds, count = reader.topics, reader.bounds_ns, reader.message_count
    start_ns, end_ns = bounds or (None, None)
    length_s = ns_to_s(bounds[1] - bounds[0]) if bounds else 0.0
    if as_json:
        rows = [{"topic": t.topic, "type": t.type_name, "messages": t.message_count} for t in topics]
        print_json({"messages": count, "start_ns": start_ns, "end_ns": end_ns, "length_s": length_s, "topics": rows})
        return
    print(f"{bag}: {count} messages in {length_s:.3f} s")
    table = Table("topic", "type", "messages")
    for topic in topics:
        table.add_row(topic.topic, topic.type_name, str(topic.message_count))
    out.print(table)


@app.command()
def play(
    bag: BagPath,
    rate: Annotated[float, typer.Option(help="How many times faster than recorded.")] = 1.0,
) -> None:
    """Publish a bag's messages as they were recorded."""
    _host("bag_player", {"bag": str(bag.resolve()), "rate": float(rate)})


@app.command()
def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder to make; one that exists is refused.")],
    topics: Annotated[
        list[str] | None, typer.Argument(help="Topics to record; all of them where none is named.")
    ] = None,
) -> None:
    """Record topics into a new bag until interrupted."""
    _host("bag_recorder", {"bag": str(bag.resolve()), "topics": topics or ["*"]})


def _host(node: str, parameters: dict[str, Any]) -> None:
    # ROS reads a value as YAML, of which JSON is the part without surprises.
    given = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    command = [sys.executable, "-m", "norm_nodes.host", node, "--autostart", "--ros-args", *given]
    os.execv(sys.executable, command)
