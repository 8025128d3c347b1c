"""What the transformers engine says of checkpoints that it cannot load as asked, and of those it quantizes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt
from norm_core.engines.transformers import backend
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.conftest import Checkpoints
from tests.norm_core.engines.contract import OPTIONS, SCENE, assert_answered, picture, score

SEEN = Prompt(version="1", parts=(picture(), *SCENE.parts))


@pytest.fixture
def copied(checkpoints: Checkpoints, tmp_path: Path) -> Path:
    """A checkpoint of one's own to damage."""
    return shutil.copytree(checkpoints["qwen3_vl"], tmp_path / "model")


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    with pytest.raises(EngineFailedError, match=r"needs torch.*setup transformers"):
        TransformersBackend(tmp_path)


def a_weight_less(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights[next(name for name in weights if "layers.1" in name)]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def another_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["intermediate_size"] *= 2
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.torch
@pytest.mark.parametrize("damage", [a_weight_less, another_size])
def test_a_checkpoint_whose_weights_do_not_fit_is_refused(damage: Callable[[Path], None], copied: Path) -> None:
    damage(copied)
    with pytest.raises(EngineFailedError, match=str(copied)):
        TransformersBackend(copied)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, None) for name in ("config.json", "model.safetensors", "tokenizer*", "preprocessor_config.json")),
        ("config.json", b'{"model_type": '),
        ("config.json", b'{"model_type": "crystal_ball"}'),
        ("model.safetensors", b"\x08" + bytes(7) + b"cut"),
    ],
)
def test_a_damaged_checkpoint_is_refused_whole(name: str, content: bytes | None, copied: Path) -> None:
    for path in list(copied.glob(name)):
        path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(EngineFailedError, match=str(copied)):
        TransformersBackend(copied)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"dtype": "float8"}, "float8.*float32"),
        ({"quantization": "int2"}, "int2.*use nf4"),
        ({"device": "cuda"}, "GPU"),
    ],
    ids=str,
)
def test_unknown_settings_are_refused(asked: dict[str, Any], answer: str, checkpoints: Checkpoints) -> None:
    import torch

    if "device" in asked and torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(EngineFailedError, match=answer):
        TransformersBackend(checkpoints["qwen3_vl"], **asked)


@pytest.mark.torch
@pytest.mark.parametrize("quantization", ["", "nf4"])
@pytest.mark.parametrize("method", ["awq", "compressed-tensors"])
def test_a_quantized_checkpoint_is_for_a_server(method: str, quantization: str, copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    config["quantization_config"] = {"quant_method": method, "bits": 4}
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineFailedError, match="serve it with vLLM"):
        TransformersBackend(copied, quantization=quantization)


@pytest.mark.torch
def test_a_model_without_a_chat_template_raises_an_issue(copied: Path) -> None:
    (copied / "chat_template.jinja").unlink()
    backend = TransformersBackend(copied)
    (issue,) = backend.health.issues
    assert issue.startswith("model: has no chat template")
    assert "name an instruct model" in issue


@pytest.mark.torch
@pytest.mark.parametrize("family", ["idefics3", "qwen3_vl"])
def test_quantized_weights_answer_nearly_the_same(family: str, checkpoints: Checkpoints) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not in this environment")
    folder = checkpoints[family]
    backend = TransformersBackend(folder, quantization="nf4")
    assert backend.model_info.quantization == "nf4"
    assert "Linear4bit" in {type(module).__name__ for module in backend.loaded().forward_pass.model.modules()}
    whole = score(DirectEngine(TransformersBackend(folder), WallClock()), SEEN, OPTIONS)
    quantized = score(DirectEngine(backend, WallClock()), SEEN, OPTIONS)
    assert_answered(quantized, 3)
    assert quantized.probabilities == score(DirectEngine(backend, WallClock()), SEEN, OPTIONS).probabilities
    assert quantized.probabilities != whole.probabilities
    assert quantized.probabilities == pytest.approx(whole.probabilities, abs=0.6)
