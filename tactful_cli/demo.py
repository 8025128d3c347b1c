"""`tactful demo`: play a shipped session through the robot's nodes, over real DDS."""

import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from sim_replays.drivers.node_driver import END
from sim_replays.drivers.session_replay import over_dds
from sim_replays.examples.demo_session import write_demo_session
from tactful_cli.console import err, out, print_json
from tactful_cli.demo_report import DemoLog, print_report, report, write_files
from tactful_cli.verb import AsJson, single

app = single()


@app.command()
def demo(
    folder: Annotated[Path | None, typer.Option(help="Folder to write to; default: a new temporary folder.")] = None,
    rate: Annotated[
        float, typer.Option(min=0.1, max=10, help="Playback speed as a multiple of the recorded one.")
    ] = 1.0,
    fast: Annotated[
        bool, typer.Option("--fast", help="Play in lockstep: as fast as the models allow, without drops.")
    ] = False,
    domain: Annotated[int | None, typer.Option(min=0, max=232, help="ROS domain; default: a free one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play two short encounters to the camera, ears, monitor and selector over DDS, and show their output."""
    if find_spec("norm_nodes") is None:
        raise TactfulError("demo: the nodes are not installed; run ./tactful demo in a checkout")
    began_s = time.monotonic()
    folder = folder or Path(tempfile.mkdtemp(prefix="tactful-demo-"))
    # The recorder never overwrites a bag.
    folder = folder / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    session = write_demo_session(folder / "session")
    length_s = (session.truth.end_ns - session.truth.start_ns) / 1e9
    pace = "as fast as the models allow" if fast else f"{length_s / rate:.0f} s"
    console = Console(quiet=True) if as_json else out
    err.print(f"Starting camera, ears, monitor and selector; then {length_s:.0f} s of talk, {pace}.")
    said: list[tuple[int, str, Any]] = []
    end: dict[str, Any] = {}
    log = DemoLog(session, console)
    for output in over_dds(session.bag, 0.0 if fast else rate, domain_id=domain, partials=not fast):
        if output.topic == END:
            end = output.message
        elif (record := log.take(output)) is not None:
            said.append((output.at_ns, output.topic, record))
    figures = report(session, log, end, time.monotonic() - began_s)
    files = write_files(folder, session, log, said)
    if as_json:
        print_json({**figures, "files": {name: str(path) for name, path in files.items()}})
    else:
        print_report(session, log, figures, out)
        for name, path in files.items():
            out.print(f"{name:<18} {path}")
        out.print(f"More: {PROGRAM} flags {session.bag} --topic /audio --explain")
    if not (log.flags and log.decisions):
        err.print(f"demo: no flag or no decision arrived; run {PROGRAM} doctor to find what does not work")
        raise typer.Exit(1)
