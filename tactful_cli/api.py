"""`tactful api`: the reference pages that are made from the code itself."""

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

DOCS = Path(__file__).resolve().parents[1] / "docs"
# Each page with the module that prints it.
PAGES = {"ros_api.md": "norm_nodes.api_page", "reference/python.md": "tactful_cli.python_page"}


@app.command()
def api(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where a page is out of date.")] = False,
) -> None:
    """Write the ROS and Python reference pages from the nodes and the packages."""
    outdated = [name for name, module in PAGES.items() if not _update(name, module, check)]
    if outdated:
        complain(f"{', '.join(outdated)}: out of date; run ./tactful api")
        raise typer.Exit(1)


def _update(name: str, module: str, check: bool) -> bool:
    """Write one page, or with check only compare it and print the difference; return whether it is up to date now."""
    made = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        complain(f"docs/{name}: the page could not be made: {made.stderr.strip()}")
        raise typer.Exit(1)
    path = DOCS / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before == made.stdout:
        return True
    if check:
        lines = difflib.unified_diff(before.splitlines(), made.stdout.splitlines(), f"docs/{name}", "new", lineterm="")
        print("\n".join(lines))
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made.stdout, encoding="utf-8")
    except OSError as error:
        raise TactfulError(f"{path} cannot be written: {error.strerror}") from error
    return True
