"""A command that hangs ends in bounded time, whatever holds it."""

import subprocess

import pytest

from norm_core.runtime.bounded_command import run_bounded
from tests.patience import PATIENCE_S


def test_the_exit_code_and_both_outputs_are_returned() -> None:
    ran = run_bounded(["sh", "-c", "echo out; echo err >&2; exit 3"], PATIENCE_S)
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "err\n")


def test_a_process_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("norm_core.runtime.bounded_command._END_S", 0.1)
    held: list[int] = []
    monkeypatch.setattr("os.killpg", lambda group, _: held.append(group))  # as for one in the driver's hands
    with pytest.raises(subprocess.TimeoutExpired):
        run_bounded(["sleep", "600"], 0.1)
    monkeypatch.undo()
    subprocess.run(["kill", "-9", str(held[0])], check=True)
