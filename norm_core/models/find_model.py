"""Find the language model in a folder, with its task, size and limits."""

import json
import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from norm_core.models.gguf_file import GgufFile
from norm_core.models.manifest import ModelSource, Task
from norm_core.models.store import WeightsError
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM

# A longer context takes memory that no prompt of Tactful uses.
MAX_CONTEXT_TOKENS = 8192
# The limit of images that a new manifest states.
MAX_IMAGES = 15
CHECKPOINT_FILES: tuple[str, ...] = ModelSource.model_fields["include"].default
_NUMBER_FORMATS = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
_BYTES_PER_WEIGHT = {"bf16": 2, "f16": 2, "f32": 4}


@record
class FoundModel:
    """A model for the transformers engine, with its files and fields of its manifest."""

    task: Task
    files: tuple[str, ...]
    fields: Mapping[str, Any]


def find_model(folder: Path, names: Sequence[str]) -> FoundModel:
    """Return the model in a folder. Raises ConfigError if its files are not one model."""
    gguf_names = select_names(names, ("*.gguf",))
    if "config.json" in names and select_names(names, ("*.safetensors",)):
        return _read_checkpoint(folder, select_names(names, CHECKPOINT_FILES))
    if gguf_names:
        return _read_gguf(folder, gguf_names)
    raise ConfigError(
        f"{folder}: its files are not a language model; name a folder with config.json and .safetensors, or a "
        ".gguf file"
    )


def select_names(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match a pattern."""
    return [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]


def _read_checkpoint(folder: Path, files: list[str]) -> FoundModel:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
        fields = _read_config_fields(config)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check its permissions") from error
    except (ValueError, AttributeError, TypeError, ZeroDivisionError) as error:
        raise ConfigError(f"{path}: is not a configuration of a model ({error}); download it again") from error
    weights_bytes = sum((folder / name).stat().st_size for name in select_names(files, ("*.safetensors",)))
    if weight_bytes := _BYTES_PER_WEIGHT.get(fields["quantization"]):
        fields["parameters_million"] = round(weights_bytes / weight_bytes / 1e6, 3) or None
    task = Task.VISION_LANGUAGE if fields["max_images"] else Task.LANGUAGE
    return FoundModel(task=task, files=tuple(files), fields=fields)


def _read_config_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a manifest in the configuration of transformers; wrong types raise any error."""
    text_config = config.get("text_config") or config
    heads = text_config.get("num_attention_heads")
    width = text_config.get("hidden_size")
    head_size = text_config.get("head_dim") or (width // heads if heads and width else None)
    dtype = next(
        filter(None, (part.get(key) for part in (config, text_config) for key in ("dtype", "torch_dtype"))), ""
    )
    quant_method = (config.get("quantization_config") or {}).get("quant_method")
    return {
        "quantization": str(quant_method or _NUMBER_FORMATS.get(str(dtype), "bf16")),
        "kv_bytes_per_token": _compute_key_value_bytes(
            text_config.get("num_hidden_layers"), text_config.get("num_key_value_heads") or heads, head_size
        ),
        "context_tokens": _limit_context(text_config.get("max_position_embeddings")),
        "max_images": MAX_IMAGES if config.get("vision_config") else 0,
    }


def _read_gguf(folder: Path, names: list[str]) -> FoundModel:
    """Describe a GGUF file, which transformers reads as 16-bit weights."""
    if len(names) != 1 or "mmproj" in names[0] or "-of-" in names[0]:
        raise ConfigError(
            f"{folder}: {', '.join(names)}: one GGUF file of a language model is needed; choose it with "
            f"--include NAME, or start llama-server with them and give its address: {PROGRAM} models add http://HOST:8080/v1"
        )
    try:
        file = GgufFile(folder / names[0])
    except WeightsError as error:
        raise ConfigError(str(error)) from error
    heads = file.read_architecture_value("attention.head_count")
    width = file.read_architecture_value("embedding_length")
    head_size = width // heads if isinstance(heads, int) and heads and isinstance(width, int) else None
    fields = {
        "quantization": "gguf",
        "parameters_million": round(sum(map(math.prod, file.shapes.values())) / 1e6, 1) or None,
        "kv_bytes_per_token": _compute_key_value_bytes(
            file.read_architecture_value("block_count"),
            file.read_architecture_value("attention.head_count_kv") or heads,
            head_size,
        ),
        "context_tokens": _limit_context(file.read_architecture_value("context_length")),
        "max_images": 0,
        "licence": str(file.metadata.get("general.license", "")),
    }
    return FoundModel(task=Task.LANGUAGE, files=tuple(names), fields=fields)


def _compute_key_value_bytes(layers: Any, heads: Any, head_size: Any) -> int | None:
    """Return the bytes of 16-bit keys and values for a token; None if a number is unknown."""
    numbers = (layers, heads, head_size)
    return 2 * layers * heads * head_size * 2 if all(isinstance(n, int) and n > 0 for n in numbers) else None


def _limit_context(tokens: Any) -> int | None:
    return min(tokens, MAX_CONTEXT_TOKENS) if isinstance(tokens, int) and tokens > 0 else None
