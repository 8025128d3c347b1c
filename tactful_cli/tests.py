"""`tactful test`: the checks of the whole project."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.table import Table

from tactful_cli.console import err
from tactful_cli.verb import single

ROOT = Path(__file__).resolve().parents[1]

# Every option is pytest's, --help too.
app = single(ignore_unknown_options=True, allow_extra_args=True, help_option_names=[])


@app.command()
def test(context: typer.Context) -> None:
    """Run ruff, mypy and the tests; with arguments, hand them to pytest alone (as -k bags -x)."""
    pytest = [sys.executable, "-m", "pytest", *context.args]
    if context.args:
        raise typer.Exit(_run(pytest))
    stages: Sequence[tuple[str, list[str]]] = (
        ("ruff", [sys.executable, "-m", "ruff", "check", "."]),
        ("format", [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]),
        ("mypy", [sys.executable, "-m", "mypy"]),
        ("pytest", pytest),
    )
    table = Table("stage", "result", "seconds")
    failed = False
    for name, command in stages:
        started_s = time.monotonic()
        code = _run(command)
        failed |= code != 0
        table.add_row(name, "passed" if code == 0 else f"failed ({code})", f"{time.monotonic() - started_s:.1f}")
    err.print(table)
    raise typer.Exit(1 if failed else 0)


def _run(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode
