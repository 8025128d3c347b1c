"""`tactful bag`: inspect, record and play bags, where rosbag2 is installed and where it is not."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagReader
from norm_core.bags.types import Definitions
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of
from tactful_cli.bag import anonymize, mend, video
from tactful_cli.bag.arguments import BagPath
from tactful_cli.console import err, print_json, print_table, remark
from tactful_cli.verb import AsJson, group

DISCOVERY_S = 3.0  # the longest that ROS was seen to take to find the publishers of a topic

app = group("Look into, mend, cut, anonymize, show, record and play rosbag2 bags (docs/how-to/bags.md).")


@app.command()
def info(bag: BagPath, as_json: AsJson = False) -> None:
    """Show a bag's topics, types, message counts and length."""
    definitions = Definitions()
    with BagReader(bag) as reader:
        topics, bounds, count, notes = reader.topics, reader.bounds_ns, reader.message_count, reader.notes
        files = [{"file": file.name, "bytes": file.stat().st_size} for file in reader.paths]
    start_ns, end_ns = bounds or (None, None)
    length_s = ns_to_s(bounds[1] - bounds[0]) if bounds else 0.0
    unknown = sum(not definitions.is_known(topic) for topic in topics)
    if as_json:
        rows = [
            {
                "topic": t.topic,
                "type": t.type_name,
                "messages": t.message_count,
                "decoded": definitions.is_known(t),
                "latched": t.latched_depth > 0,
            }
            for t in topics
        ]
        result = {"messages": count, "start_ns": start_ns, "end_ns": end_ns, "length_s": length_s, "topics": rows}
        print_json(result | {"files": files, "notes": notes})
        return
    print(f"{bag}: {count_of(count, 'message')} in {length_s:.3f} s")
    table = Table("topic", "type", "messages", "remarks")
    for topic in topics:
        remarks = ("" if definitions.is_known(topic) else "type unknown", "latched" if topic.latched_depth else "")
        table.add_row(topic.topic, topic.type_name, str(topic.message_count), ", ".join(filter(None, remarks)))
    print_table(table)
    for note in notes:
        err.print(note, markup=False)
    if unknown:
        err.print(f"{count_of(unknown, 'topic')} of an unknown type: the messages can be copied, not decoded")


@app.command()
def play(
    bag: BagPath,
    rate: Annotated[float, typer.Option(help="Playback speed as a multiple of the recorded one.")] = 1.0,
) -> None:
    """Publish a bag's messages at the recorded pace."""
    _name_rosbag2(
        f"ros2 bag play {bag} --rate {rate:g} --exclude-topics /tactful/status /diagnostics",
        "waits for subscribers, plays no health of recorded nodes, and loses no message to a slow subscriber",
    )
    _host("bag_player", {"bag": str(bag.resolve()), "rate": float(rate)})


@app.command()
def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="New folder to write; must not exist.")],
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to record; default: all.")] = None,
) -> None:
    """Record topics into a new bag until interrupted. Refuses a named topic that it cannot record."""
    _name_rosbag2(
        f"ros2 bag record -o {bag} {' '.join(['--topics', *topics] if topics else ['--all-topics'])}",
        "refuses what it cannot record, and publishes its health to up, watch and doctor",
    )
    parameters = {"bag": str(bag.resolve()), "topics": topics or ["*"], "wait_for_topics_s": DISCOVERY_S}
    _host("bag_recorder", parameters)


for _part in (mend, anonymize, video):
    app.registered_commands += _part.app.registered_commands


def _name_rosbag2(command: str, difference: str) -> None:
    """Name the standard tool's equal command where it is installed, and what only ours does."""
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    if any(Path(prefix, "share/ament_index/resource_index/packages/ros2bag").is_file() for prefix in prefixes):
        remark(f"bag: rosbag2 is installed, so `{command}` does this as well; only {PROGRAM} bag {difference}")


def _host(node: str, parameters: dict[str, Any]) -> None:
    # ROS reads a value as YAML; JSON is a safe subset of it.
    given = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    command = [sys.executable, "-m", "norm_nodes.node_host", node, "--autostart", "--ros-args", *given]
    os.execv(sys.executable, command)
