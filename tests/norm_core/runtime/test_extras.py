"""Messages name the commands of this installation, and a command that hangs ends in bounded time."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import PROGRAM

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "norm_core",
    "norm_monitor",
    "action_selector",
    "study_desk",
    "sim_replays",
    "calibration",
    "tactful_cli",
    "ros2_ws/src/norm_nodes/norm_nodes",
    "ros2_ws/src/norm_bench/norm_bench",
)
SHOWN = "from norm_core.runtime import extras, program; print(program.PROGRAM, extras.format_install_command('study'))"
# What exists in a checkout alone: its script, what it answers itself, and the pages that are made there.
OF_A_CHECKOUT = {"norm_core/runtime/program.py", "tactful_cli/extras.py"}


def test_a_checkout_is_run_by_its_script() -> None:
    assert (PROGRAM, format_install_command("study")) == ("./tactful", "./tactful setup study")


def test_an_installed_package_is_run_by_its_command(tmp_path: Path) -> None:
    (tmp_path / "tactful-1.0.dist-info").mkdir()
    (tmp_path / "tactful-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: tactful\nVersion: 1.0\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    shown = subprocess.check_output([sys.executable, "-c", SHOWN], env=environment, text=True)
    assert shown == "tactful pip install 'tactful[study]'\n"


def test_no_message_names_the_script_itself() -> None:
    paths = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    messages = {path: list(literals(path)) for path in paths - OF_A_CHECKOUT if "reference" not in path}
    named = {path: [text for text in texts if "./tactful " in text] for path, texts in messages.items()}
    assert {path: texts for path, texts in named.items() if texts} == {}


def literals(path: str) -> Iterator[str]:
    """The strings of a module without its docstrings and without what a checkout alone can follow."""
    for statement in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        text = statement.value if isinstance(statement, ast.Constant) else None
        if isinstance(text, str) and "in a checkout" not in text and "\n" not in text:
            yield text


def test_a_process_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("norm_core.runtime.bounded_command._END_S", 0.1)
    held: list[int] = []
    monkeypatch.setattr("os.killpg", lambda group, _: held.append(group))  # as for one in the driver's hands
    with pytest.raises(subprocess.TimeoutExpired):
        run_bounded(["sleep", "600"], 0.1)
    monkeypatch.undo()
    subprocess.run(["kill", "-9", str(held[0])], check=True)
