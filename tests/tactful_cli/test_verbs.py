"""The verbs as their user calls them: what is on standard output, what on standard error, and the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core import __version__
from tactful_cli import doctor, main
from tactful_cli.main import VERBS, app
from tests.command_line import tactful, tactful_process


def test_its_help_lists_the_verbs_and_exit_codes() -> None:
    shown = tactful("--help")
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb in ("doctor", "demo", "test", "bag", "up"))
    assert "Exit codes: 0 success, 1 a check or run found a problem, 2 bad input" in " ".join(shown.stdout.split())


def test_every_verb_explains_itself() -> None:
    """In this process, as a child for each verb takes half a second."""
    for verb in VERBS:
        shown = CliRunner().invoke(app, [verb, "--help"], prog_name="tactful")
        assert (shown.exit_code, f"Usage: tactful {verb}" in shown.stdout) == (0, True), verb


def test_its_version_is_an_option() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{__version__}\n"


def test_a_misspelt_verb_brings_the_nearest() -> None:
    assert tactful("flagz").stderr == "tactful: flagz: there is no such verb; did you mean flags?\n"
    assert tactful("nosuchverb").stderr == "tactful: nosuchverb: there is no such verb; ./tactful --help lists them\n"


def test_a_package_that_is_missing_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    shown = tactful("bench", "score", str(tmp_path / "run.eval"))
    assert (shown.returncode, shown.stderr) == (3, "tactful: bench: inspect-ai is missing; run ./tactful setup bench\n")
    monkeypatch.setattr(main, "find_spec", lambda _: None)
    shown = tactful("study", "init", str(tmp_path))
    remedy = "install it with ./tactful setup study"
    assert (shown.returncode, shown.stderr) == (3, f"tactful: study: study is not installed; {remedy}\n")


@pytest.mark.parametrize("arguments", [["fly"], ["demo", "--rate", "x"], ["bag", "info"]])
def test_a_wrong_call_is_exit_code_2_with_nothing_on_standard_output(arguments: list[str]) -> None:
    shown = tactful(*arguments)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert "Traceback" not in shown.stderr


def test_a_disk_that_takes_nothing_is_one_clear_error() -> None:
    shown = tactful("study", "init", "/proc/nowhere/study")
    assert shown.returncode == 2
    assert "/proc/nowhere" in shown.stderr
    assert "check the path, its permissions and the free room" in shown.stderr


def test_tab_completion_knows_the_verbs() -> None:
    completed = tactful(_TACTFUL_COMPLETE="complete_bash", COMP_WORDS="tactful d", COMP_CWORD="1")
    assert completed.stdout.split() == ["doctor", "demo"]


@pytest.mark.ros
def test_doctor_finds_the_default_set_up_well() -> None:
    shown = tactful_process("doctor", "--json")
    report = json.loads(shown.stdout)
    broken = [row for row in report["checks"] if row["verdict"] == "broken"]
    assert (shown.returncode, report["healthy"], broken) == (0, True, [])
    found = {row["check"]: row["found"] for row in report["checks"]}
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert "two processes" in found["dds round trip"]


@pytest.mark.ros
def test_doctor_finds_a_microphone_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {"/mic/audio": ["std_msgs/msg/Int16MultiArray"], "/wheels": ["std_msgs/msg/Int16MultiArray"]}
    listing = subprocess.CompletedProcess([], 0, json.dumps({"topics": topics}), "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: listing)
    row = doctor.examine("audio topics")
    assert (row.verdict, row.found) == (doctor.CheckResult.OK, "/mic/audio")


def test_doctor_refuses_two_onnx_runtimes(tmp_path: Path) -> None:
    info = tmp_path / "onnxruntime_gpu-1.31.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n")
    shown = tactful_process("doctor", "--json", PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    row = next(row for row in json.loads(shown.stdout)["checks"] if row["check"] == "onnx runtime")
    assert row["verdict"] == "broken"
    assert row["found"] == "onnxruntime and onnxruntime-gpu are both installed"
    assert row["fix"] == "run ./tactful setup gpu"


def test_doctor_says_that_the_driver_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(doctor, "DRIVER_TIMEOUT_S", 0.2)
    row = doctor.examine("gpu")
    assert row.found == "nvidia-smi gave no answer in 0.2 s: the driver hangs"
    assert row.fix == "reload the driver, or restart the computer"
    assert row.verdict is doctor.CheckResult.ABSENT
