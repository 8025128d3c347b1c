"""What memory a checkpoint of compressed-tensors takes; the estimate in norm_core/models/estimate.py counts on it."""

import json
from pathlib import Path
from typing import Any

import pytest

from norm_core.models.estimate import BITS

pytestmark = pytest.mark.torch


def _compress(folder: Path) -> None:
    """Make the weights of a checkpoint's language part 4-bit ones, as llm-compressor publishes them."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationArgs,
        QuantizationConfig,
        QuantizationScheme,
        apply_quantization_config,
    )
    from safetensors.torch import save_file
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder)
    weights = QuantizationArgs(num_bits=4, type="int", symmetric=True, strategy="channel")
    asked = QuantizationConfig(
        config_groups={"group_0": QuantizationScheme(targets=["Linear"], weights=weights)},
        ignore=["lm_head", "re:.*visual.*"],
        format="pack-quantized",
        quantization_status="compressed",
    )
    apply_quantization_config(model, asked)
    for module in model.modules():
        if hasattr(module, "weight_scale"):
            module.weight_scale.data = module.weight.abs().amax(-1, keepdim=True) / 7
    ModelCompressor.from_pretrained_model(model).compress_model(model)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = json.loads(asked.model_dump_json()) | {"quant_method": "compressed-tensors"}
    (folder / "config.json").write_text(json.dumps(config))


def _size(model: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())


def test_the_first_question_makes_the_weights_dense(tmp_path: Path) -> None:
    pytest.importorskip("compressed_tensors")
    from norm_core.engines.transformers.loading import load_model
    from tests.norm_core.engines.tiny_checkpoints import built

    folder = built("qwen3_vl", tmp_path / "model")
    dense, _ = load_model(folder, dtype="float32", quantization="", device="cpu")
    _compress(folder)
    packed, _ = load_model(folder, dtype="float32", quantization="compressed-tensors", device="cpu")
    import torch

    at_load = _size(packed)
    with torch.no_grad():
        packed(input_ids=torch.arange(8)[None])
    assert at_load < 0.9 * _size(dense)
    assert _size(packed) >= _size(dense)
    assert BITS["compressed-tensors"] > BITS["bf16"]
