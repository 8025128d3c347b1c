"""`tactful test`: run the checks of the whole project."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from norm_core.runtime.errors import TactfulError
from tactful_cli.console import err
from tactful_cli.verb_options import make_app

ROOT = Path(__file__).resolve().parents[1]

# tests/conftest.py assigns these markers by a test's folder and needs.
STAGES = {
    "unit": "no ROS graph: one module or a few",
    "graph": "the nodes over DDS: tests marked ros",
    "acceptance": "the product from outside: its commands, its topics, its wheel, and goldens of what it says",
}
MAX_WORKERS = 4

# pytest receives every option except --help.
app = make_app(ignore_unknown_options=True, allow_extra_args=True)


@app.command(epilog=" ".join(f"{name.capitalize()}: {what}." for name, what in STAGES.items()))
def run_tests(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also run the tests marked thorough, which take long.")
    ] = False,
    part: Annotated[str, typer.Option(metavar="K/N", help="Also run the K-th of N parts of these.")] = "",
) -> None:
    """Run ruff, mypy, the stages unit, graph and acceptance, then the tests that need torch.

    To run one stage, name it: tactful test graph -x
    Any other arguments go to pytest: tactful test -k bags -x; for its help: tactful test -- --help
    """
    if not (ROOT / "tests").is_dir():
        raise TactfulError("test: this is an installed package; run it in a checkout")
    pytest = [sys.executable, "-m", "pytest"]
    chosen = ["--all"] if everything else [f"--part={part}"] if part else []
    match context.args:
        case [name, *arguments] if name in STAGES:
            raise typer.Exit(_run([*pytest, *_workers(), "-m", name, *chosen, *arguments]))
        case [_, *_]:
            raise typer.Exit(_run([*pytest, *chosen, *context.args]))
    stages: Sequence[tuple[str, list[str] | None]] = (
        ("ruff", [sys.executable, "-m", "ruff", "check", "."]),
        ("format", [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]),
        (", ".join(STAGES), [*pytest, *_workers(), *chosen]),
        ("torch", _with_torch(chosen)),
    )
    table = Table("stage", "result", "seconds")
    failed = False
    # mypy keeps one core busy, beside stages that often wait.
    with tempfile.TemporaryFile() as output:
        mypy = subprocess.Popen([sys.executable, "-m", "mypy"], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        try:
            for name, command in stages:
                if command is None:
                    table.add_row(name, "skipped: torch is locked for Python 3.11 on x86-64 alone", "")
                    continue
                started_s = time.monotonic()
                code = _run(command)
                failed |= code != 0
                table.add_row(name, _result(code), f"{time.monotonic() - started_s:.1f}")
            code = mypy.wait()
        finally:
            mypy.kill()
        output.seek(0)
        print(output.read().decode(), end="")
    failed |= code != 0
    table.add_row("mypy", _result(code), "beside the others")
    err.print(table)
    raise typer.Exit(1 if failed else 0)


def _workers() -> list[str]:
    """Build the options that share the tests among processes, two a core: what drives nodes waits most of its time."""
    cores = len(os.sched_getaffinity(0))
    count = min(2 * cores, MAX_WORKERS)
    return ["-n", str(count), "--dist", "worksteal"] if cores > 1 and find_spec("xdist") else []


def _with_torch(chosen: Sequence[str]) -> list[str] | None:
    """Build the command for the tests marked torch. Returns None where no environment has torch."""
    python = Path(os.environ.get("TACTFUL_TRANSFORMERS_VENV", ROOT / ".venv-transformers"), "bin", "python")
    # By name, because to collect all modules takes longer than these tests.
    patterns = (
        "tests/norm_core/engines/test_transformers_*.py",
        "tests/norm_core/engines/test_llama_server.py",
        "tests/acceptance/test_vision_models.py",
    )
    modules = sorted(str(path) for pattern in patterns for path in ROOT.glob(pattern))
    return [str(python), "-m", "pytest", "-m", "torch", *chosen, *modules] if python.is_file() else None


def _result(code: int) -> str:
    return "passed" if code == 0 else f"failed ({code})"


def _run(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode
