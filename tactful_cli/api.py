"""`tactful api`: the pages that are made from the code: the ROS API and the status reference."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.errors import TactfulError
from tactful_cli import status_page
from tactful_cli.console import complain
from tactful_cli.reference.pages import PAGES
from tactful_cli.verb import single

app = single()

ROOT = Path(__file__).resolve().parents[1]


@app.command()
def api(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail where a page is out of date.")] = False,
) -> None:
    """Write docs/ros_api.md and docs/reference/status.md from the nodes, issues and counters in the code."""
    made = subprocess.run([sys.executable, "-m", "norm_nodes.api_page"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        complain(f"docs/ros_api.md: cannot be made: {made.stderr.strip()}")
        raise typer.Exit(1)
    pages = {"docs/ros_api.md": made.stdout, "docs/reference/status.md": status_page.page()}
    stale = [name for name, text in pages.items() if not _is_current(name, text, write=not check)]
    if check and stale:
        complain(f"{' and '.join(stale)}: out of date; run ./tactful api")
        raise typer.Exit(1)


def _is_current(name: str, made: str, *, write: bool) -> bool:
    """Compare a page with what was made, then write that or print the difference."""
    path = ROOT / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before == made:
        return True
    if write:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made, encoding="utf-8")
        except OSError as error:
            raise TactfulError(f"{path}: cannot be written: {error.strerror}") from error
    else:
        print("\n".join(difflib.unified_diff(before.splitlines(), made.splitlines(), name, "the code", lineterm="")))
    return False
