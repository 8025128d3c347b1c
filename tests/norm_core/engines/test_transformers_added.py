"""Checkpoints of real families, from `tactful models add` to an answer to the judge's question."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.prompts import judge as prompts
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import SCENE, assert_answered
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.torch


def add(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tactful_cli", "models", "add", str(folder), "--json"]
    done = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("family", "task", "images"),
    [("llama", "language", 0), ("qwen3_vl", "vision-language", 15), ("gemma3", "vision-language", 15)],
)
def test_an_added_checkpoint_answers_the_judge(
    family: str, task: str, images: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.norm_core.engines.tiny_checkpoints import CONTEXT_TOKENS, built

    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path / "manifests"))
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "state"))
    added = add(built(family, tmp_path / family))
    assert (added["manifest"]["task"], added["manifest"]["quantization"]) == (task, "f32")
    assert added["manifest"]["kv_bytes_per_token"] > 0
    engine = open_engine_by_name(added["name"], WallClock())
    assert (engine.model_info.max_images, engine.model_info.context_tokens) == (images, CONTEXT_TOKENS)
    question = prompts.detection("en")
    answer = engine.ask_many(SCENE, [question])[0]
    engine.close()
    assert_answered(answer, len(question.options))
    assert engine.model_info.weights_sha256
