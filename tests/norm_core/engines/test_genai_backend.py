import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt, Text
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, EngineContract, score

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed: ./tactful setup genai")

from norm_core.engines.onnx.genai_backend import GenaiBackend

VARIABLE = "TACTFUL_GENAI_MODEL"
LONG = Prompt(version="1", parts=(Text(text="The robot waits by the door. " * 16),))


@pytest.fixture(scope="module")
def backend() -> Iterator[GenaiBackend]:
    if VARIABLE not in os.environ:
        pytest.skip(f"name a folder that the model builder wrote in {VARIABLE}: docs/reference/engines.md")
    backend = GenaiBackend(Path(os.environ[VARIABLE]), context_tokens=1024, threads=1)
    yield backend
    backend.close()


@pytest.fixture
def engine(backend: GenaiBackend) -> Engine:
    return Engine(backend, WallClock())


class TestGenai(EngineContract):
    @pytest.fixture
    def engine(self, backend: GenaiBackend) -> Engine:
        return Engine(backend, WallClock())


def test_a_shared_prefix_changes_no_bit(engine: Engine) -> None:
    shared = engine.ask_many(SCENE, QUESTIONS)
    score(engine, LONG, OPTIONS)
    alone = engine.ask_many(SCENE, QUESTIONS[2:])
    assert shared[2].probabilities == alone[0].probabilities
    assert (shared[0].usage.cached_tokens, alone[0].usage.cached_tokens) == (0, 0)
    assert shared[2].usage.cached_tokens > 20


@pytest.mark.parametrize("kind", ["missing", "empty", "garbage", "without weights"])
def test_a_folder_that_is_no_model_is_a_failure(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "model"
    if kind != "missing":
        folder.mkdir()
    if kind == "garbage":
        (folder / "genai_config.json").write_text("not JSON")
    if kind == "without weights":
        decoder = {"filename": "model.onnx", "hidden_size": 8, "num_hidden_layers": 1, "head_size": 8}
        config = {"model": {"type": "llama", "context_length": 64, "decoder": decoder}, "search": {}}
        (folder / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(EngineFailedError, match=str(folder)):
        GenaiBackend(folder)
