"""`tactful test`: the checks of the whole project."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich.table import Table

from tactful_cli.console import err
from tactful_cli.verb import single

ROOT = Path(__file__).resolve().parents[1]

# What makes the wheels' ROS visible, and another Python's programs and libraries fail.
_OF_ROS = ("LD_LIBRARY_PATH", "PYTHONPATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE")

# Every option is pytest's, --help too.
app = single(ignore_unknown_options=True, allow_extra_args=True, help_option_names=[])


@app.command()
def test(context: typer.Context) -> None:
    """Run ruff, mypy and the tests, last those that need torch; with arguments, pytest alone (as -k bags -x)."""
    pytest = [sys.executable, "-m", "pytest", *context.args]
    if context.args:
        raise typer.Exit(_run(pytest))
    stages: Sequence[tuple[str, list[str] | None]] = (
        ("ruff", [sys.executable, "-m", "ruff", "check", "."]),
        ("format", [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]),
        ("mypy", [sys.executable, "-m", "mypy"]),
        ("pytest", pytest),
        ("pytest with torch", _with_torch()),
    )
    table = Table("stage", "result", "seconds")
    failed = False
    for name, command in stages:
        if command is None:
            table.add_row(name, "skipped: torch is locked for Python 3.11 on x86-64 alone", "")
            continue
        started_s = time.monotonic()
        code = _run(command)
        failed |= code != 0
        table.add_row(name, "passed" if code == 0 else f"failed ({code})", f"{time.monotonic() - started_s:.1f}")
    err.print(table)
    raise typer.Exit(1 if failed else 0)


def _with_torch() -> list[str] | None:
    """The tests marked torch, in the environment that has it; None where this machine has none."""
    python = Path(os.environ.get("TACTFUL_TRANSFORMERS_VENV", ROOT / ".venv-transformers"), "bin", "python")
    # By name, as the other modules import what that environment lacks.
    modules = sorted(map(str, ROOT.glob("tests/norm_core/engines/test_transformers_*.py")))
    return [str(python), "-m", "pytest", "-m", "torch and not slow", *modules] if python.is_file() else None


def _run(command: list[str]) -> int:
    inherited: Mapping[str, str] = os.environ
    if command[0] != sys.executable:
        inherited = {name: value for name, value in os.environ.items() if name not in _OF_ROS}
    return subprocess.run(command, cwd=ROOT, env=inherited, check=False).returncode
