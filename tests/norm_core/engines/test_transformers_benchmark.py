"""The benchmark for a GPU, tried with tiny models on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[3]


def test_the_gpu_benchmark_runs_on_the_cpu(tmp_path: Path) -> None:
    options = ("--tiny", "--only", "window_4b,memory_caps", "--out", str(tmp_path))
    command = [sys.executable, "-m", "benchmarks.gpu", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "gpu.json").read_text())
    figures = {figure["name"]: figure for figure in content["figures"]}
    for name in ("first_answer", "window", "written_token", "eight_questions", "new_pictures"):
        assert figures[f"qwen3_vl_4b_{name}"]["value"] > 0
    assert figures["qwen3_vl_4b_eight_questions"]["against"] == "one question"
    assert content["steps"]["memory_caps"]["outcome"] == "skipped"
    assert "no GPU is here" in content["steps"]["memory_caps"]["reason"]
