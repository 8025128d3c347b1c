"""`tactful demo`: what stands so far, end to end over real DDS."""

import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagReader
from norm_core.window import digest
from sim_replays.domain import claimed_domain
from sim_replays.processes import NodeProcess
from sim_replays.session_bag import windows_of, write_session
from tactful_cli.console import err, out, print_json
from tactful_cli.verb import single

app = single()

# A time of its own rather than now, so that the demo shows the same digests everywhere.
SESSION_START_NS = 1_767_225_600_000_000_000


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to write the bags; a new temporary folder by default.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.1, max=100, help="How many times faster than recorded.")] = 4.0,
    domain: Annotated[
        int | None, typer.Option(min=0, max=232, help="ROS domain to use; one that is free by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Play a generated session from one process to another over DDS and compare what arrived, window by window."""
    folder = folder or Path(tempfile.mkdtemp(prefix="tactful-demo-"))
    stamp = time.strftime("%Y%m%d-%H%M%S")
    sent, received = folder / f"session-{stamp}", folder / f"received-{stamp}"
    write_session(sent, SESSION_START_NS)
    with BagReader(sent) as bag:
        topics, length_s = [t.topic for t in bag.topics], 30 / rate
    err.print(f"Playing a session of 30 s at {rate:g} times its pace, about {length_s:.0f} s ...")
    started_s = time.monotonic()
    recorder_parameters = {"bag_recorder": {"bag": str(received), "topics": topics}}
    player_parameters = {"bag_player": {"bag": str(sent), "rate": rate}}
    with (
        nullcontext(domain) if domain is not None else claimed_domain() as domain_id,
        NodeProcess(["bag_recorder"], recorder_parameters, domain_id),
        NodeProcess(["bag_player"], player_parameters, domain_id) as player,
    ):
        player.wait(length_s + 30)
    took_s = time.monotonic() - started_s
    rows: list[dict[str, Any]] = [
        {
            "start_s": (before.start_ns - SESSION_START_NS) / 1e9,
            "frames": len(after.frames),
            "utterances": len(after.utterances),
            "digest": digest(after),
            "same": digest(before) == digest(after),
        }
        for before, after in zip(windows_of(sent), windows_of(received), strict=True)
    ]
    all_same = all(row["same"] for row in rows)
    if as_json:
        print_json(
            {"windows": rows, "all_same": all_same, "took_s": took_s, "sent": str(sent), "received": str(received)}
        )
    else:
        table = Table(
            "window", "frames", "utterances", "digest", "as sent", title=f"Received over DDS in {took_s:.1f} s"
        )
        for row in rows:
            verdict = "yes" if row["same"] else "NO"
            table.add_row(
                f"{row['start_s']:.0f} s", str(row["frames"]), str(row["utterances"]), row["digest"][:16], verdict
            )
        out.print(table)
        out.print(f"sent      {sent}\nreceived  {received}", soft_wrap=True)
    if not all_same:
        raise typer.Exit(1)
