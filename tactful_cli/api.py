"""`tactful api`: the ROS API page, made from the nodes themselves."""

import difflib
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import complain
from tactful_cli.verb import single

app = single()

PAGE = Path(__file__).resolve().parents[1] / "docs/ros_api.md"


@app.command()
def api(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where the page is out of date.")] = False,
) -> None:
    """Write docs/ros_api.md from the nodes' own endpoints and parameters."""
    made = subprocess.run([sys.executable, "-m", "norm_nodes.api_page"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        complain(f"the page could not be made: {made.stderr.strip()}")
        raise typer.Exit(1)
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if before == made.stdout:
        return
    if check:
        diff = difflib.unified_diff(
            before.splitlines(), made.stdout.splitlines(), "docs/ros_api.md", "the nodes", lineterm=""
        )
        print("\n".join(diff))
        complain("docs/ros_api.md is out of date; run ./tactful api")
        raise typer.Exit(1)
    try:
        PAGE.write_text(made.stdout, encoding="utf-8")
    except OSError as error:
        raise TactfulError(f"{PAGE} cannot be written: {error.strerror}") from error
