"""The one command for all benchmarks: steps that fail, and its output."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.runner import Figure, Report, SkippedError, Step, run_steps
from tests.patience import PATIENCE_S, comes_true

ROOT = Path(__file__).resolve().parents[1]


def test_a_step_that_fails_or_hangs_does_not_end_the_rest(tmp_path: Path) -> None:
    def hang(report: Report) -> None:
        report.add(Figure("before_the_hang", 1.0, "s", "a peer", 1.0))
        child = subprocess.Popen(["sleep", "600"])
        report.note(child=child.pid)
        time.sleep(600)

    def fail(report: Report) -> None:
        raise ValueError("no weights")

    def die(report: Report) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def skip(report: Report) -> None:
        raise SkippedError("no GPU is here")

    def work(report: Report) -> None:
        report.add(Figure("worked", 2.0, "s", "a peer", 2.0))

    steps = [Step("fail", fail, 60), Step("die", die, 60), Step("skip", skip, 60), Step("hang", hang, 3)]
    steps.append(Step("work", work, 60))
    results = run_steps(steps, tmp_path, budget_s=600)
    outcomes = {name: (result["outcome"], result["reason"]) for name, result in results.items()}
    assert outcomes["fail"] == ("failed", "ValueError: no weights")
    assert outcomes["die"] == ("failed", "its process ended with code -9")
    assert outcomes["skip"] == ("skipped", "no GPU is here")
    assert outcomes["hang"] == ("timed out", "not done in 3 s")
    assert [figure["name"] for figure in results["hang"]["figures"]] == ["before_the_hang"]
    child = Path("/proc", str(results["hang"]["facts"]["child"]), "stat")
    assert comes_true(lambda: not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z")
    assert outcomes["work"] == ("ok", "")


def test_the_command_prints_its_figures_as_json(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "window", "--json"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "results")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = {figure["name"]: figure for figure in json.loads(done.stdout)["figures"]}
    assert figures["window"].keys() >= {"name", "value", "unit", "against", "ratio"}
    assert figures["window"]["against"] == "the same windows cut alone"
    assert figures["window"]["ratio"] > 1
    assert figures.keys() == {"window", "window_p95", "flag", "flag_p95"}
    for figure in figures.values():
        assert figure["against"]
        assert figure["low"] <= figure["ratio"] <= figure["high"]
    assert json.loads((tmp_path / "results/benchmark.json").read_text())["figures"] == [*figures.values()]
