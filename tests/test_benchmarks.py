"""The one command for all benchmarks, and its output."""

import json
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[1]


def test_the_command_prints_its_figures_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks", "--json", "window"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    figures = {figure["name"]: figure for figure in map(json.loads, done.stdout.splitlines())}
    assert figures.keys() == {"window", "window_p95", "flag", "flag_p95"}
    assert figures["window"]["against"] == "the same windows cut alone"
    assert figures["window"]["ratio"] > 1
    for figure in figures.values():
        assert figure["against"]
        assert figure["low"] <= figure["ratio"] <= figure["high"]
