"""A model at work in a process whose address space really ends: pictures shrink, and come back with the memory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.norm_core.engines.conftest import Checkpoints
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.torch


@pytest.fixture
def sharp_eyed(checkpoints: Checkpoints, tmp_path: Path) -> Path:
    """A checkpoint that reads pictures at their full size, so that the size decides the memory."""
    folder = shutil.copytree(checkpoints["qwen3_vl"], tmp_path / "model")
    for name, key, value in (
        ("preprocessor_config.json", "size", {"shortest_edge": 1024, "longest_edge": 4096 * 4096}),
        ("config.json", "text_config", {"max_position_embeddings": 32768}),
    ):
        plain = json.loads((folder / name).read_text())
        plain[key] = plain.get(key, {}) | value
        (folder / name).write_text(json.dumps(plain))
    return folder


def test_pictures_too_large_for_the_memory_shrink_and_come_back(sharp_eyed: Path) -> None:
    room_mb, side_px = "50", "2048"
    command = [sys.executable, "-m", "tests.norm_core.engines.bounded_memory", str(sharp_eyed), room_mb, side_px]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    short, whole = json.loads(done.stdout)
    assert short["outcome"] == whole["outcome"] == "answered"
    assert 0 < short["retries"] == short["counters"]["model_out_of_memory"]
    assert short["tokens"] < whole["tokens"] / 3
    assert "memory ran out, so it gets" in short["issues"][0]
    assert (whole["images"], whole["issues"]) == (1, [])
