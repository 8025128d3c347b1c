"""`tactful test`: run the checks of the whole project."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import err
from tactful_cli.verb import single

ROOT = Path(__file__).resolve().parents[1]

# tests/conftest.py assigns these markers by a test's folder and needs.
STAGES = {
    "unit": "no ROS graph: one module or a few",
    "graph": "the nodes over DDS: tests marked ros",
    "acceptance": "the product from outside: its commands, its topics, its wheel, and goldens of what it says",
}

# pytest receives every option except --help.
app = single(ignore_unknown_options=True, allow_extra_args=True)


@app.command(epilog=" ".join(f"{name.capitalize()}: {what}." for name, what in STAGES.items()))
def test(context: typer.Context) -> None:
    """Run ruff, mypy, the stages unit, graph and acceptance, then the tests that need torch.

    To run one stage, name it: tactful test graph -x
    Any other arguments go to pytest: tactful test -k bags -x; for its help: tactful test -- --help
    """
    if not (ROOT / "tests").is_dir():
        raise TactfulError("test: this is an installed package; run it in a checkout")
    pytest = [sys.executable, "-m", "pytest"]
    match context.args:
        case [name, *arguments] if name in STAGES:
            raise typer.Exit(_run([*pytest, "-m", name, *arguments]))
        case [_, *_]:
            raise typer.Exit(_run([*pytest, *context.args]))
    stages: Sequence[tuple[str, list[str] | None]] = (
        ("ruff", [sys.executable, "-m", "ruff", "check", "."]),
        ("format", [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]),
        ("mypy", [sys.executable, "-m", "mypy"]),
        *((name, [*pytest, "-m", name]) for name in STAGES),
        ("torch", _with_torch()),
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
    """Build the command for the tests marked torch. Returns None where no environment has torch."""
    python = Path(os.environ.get("TACTFUL_TRANSFORMERS_VENV", ROOT / ".venv-transformers"), "bin", "python")
    # By name, because to collect all modules takes longer than these tests.
    patterns = ("tests/norm_core/engines/test_transformers_*.py", "tests/acceptance/test_vision_models.py")
    modules = sorted(str(path) for pattern in patterns for path in ROOT.glob(pattern))
    return [str(python), "-m", "pytest", "-m", "torch and not slow", *modules] if python.is_file() else None


def _run(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode
