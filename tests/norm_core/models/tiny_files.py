"""Small files in the formats of weights, written here byte by byte."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.norm_core.models import tiny_decoder

CONFIG: dict[str, Any] = {
    "architectures": ["TinyForCausalLM"],
    "model_type": "tiny",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
}
SHAPES = {"model.embed_tokens.weight": (100, 64), "model.layers.0.mlp.up.weight": (128, 64), "model.norm.weight": (64,)}
METADATA: dict[str, Any] = {
    "general.architecture": "tiny",
    "general.file_type": 15,
    "general.license": "apache-2.0",
    "tokenizer.ggml.tokens": ["a", "b"],
    "tiny.context_length": 1024,
    "tiny.block_count": 2,
    "tiny.embedding_length": 64,
    "tiny.attention.head_count": 4,
    "tiny.attention.head_count_kv": [2, 1],
}


def write_checkpoint(folder: Path, **changes: Any) -> Path:
    """A folder as a hub's repository holds it; a change to None leaves an entry of the configuration out."""
    folder.mkdir(parents=True)
    config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# Tiny\n")
    tensors = {name: np.zeros(shape, np.uint16) for name, shape in SHAPES.items()}
    tiny_decoder.write_safetensors(folder / "model.safetensors", tensors, "BF16", {"format": "pt"})
    return folder


def write_gguf(path: Path, metadata: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    tensors = {name: (0, shape, bytes(4 * math.prod(shape))) for name, shape in shapes.items()}
    tiny_decoder.write_gguf(path, {key: _typed(value) for key, value in metadata.items()}, tensors)


def _typed(value: Any) -> bytes:
    match value:
        case str():
            return struct.pack("<I", 8) + tiny_decoder.text(value)
        case int():
            return tiny_decoder.number(value)
        case [str(), *_]:
            return tiny_decoder.texts(value)
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)
    raise TypeError(value)
