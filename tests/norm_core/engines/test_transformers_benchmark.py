"""The benchmark for a GPU, tried with a tiny model on the CPU from a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks/engines/gpu.py"


def test_the_gpu_benchmark_fills_its_table_for_a_tiny_model(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, str(SCRIPT), "--tiny", "--tiles", "3", "--rounds", "1", "--json", str(tmp_path / "rows")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "rows").read_text())
    ratios = ("eight_to_one", "anew_to_kept", "joint_to_kept", "written_to_scored")
    assert all(row[name] > 0 for name in (*ratios, "first_answer_s", "windows_per_s"))
    assert (row["load_mb"], row["peak_mb"]) == ("-", "-")  # of a GPU alone
