"""What a model's files say about it, and a Hugging Face checkpoint: its task, size and limits."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from norm_core.engines.errors import EngineFailedError
from norm_core.models.manifest import EngineKind, Manifest, MemoryNeed, Task
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError

# Tactful asks for no more: a longer context takes memory that no prompt of ours uses.
MAX_CONTEXT_TOKENS = 8192
MAX_IMAGES = 15


@record
class FoundModel:
    """An engine, the files that it needs in `folder`, and fields of the manifest; `task` is None where unknown."""

    engine: EngineKind
    task: Task | None
    folder: Path
    files: tuple[str, ...]
    fields: Mapping[str, Any]


def key_value_bytes(layers: Any, heads: Any, head_size: Any) -> int | None:
    """Return the bytes of 16-bit keys and values for a token; None if a number is unknown."""
    numbers = (layers, heads, head_size)
    return 2 * layers * heads * head_size * 2 if all(isinstance(n, int) and n > 0 for n in numbers) else None


def memory_of_files(size_bytes: int, manifest: Manifest) -> MemoryNeed:
    """Estimate memory by the size of the weights, and the peak with the keys and values of a full context."""
    load_mb = max(0.1, round(size_bytes / 1e6, 1))
    cache_mb = (manifest.kv_bytes_per_token or 0) * (manifest.context_tokens or 0) / 1e6
    how = "the size of the files"
    if cache_mb:
        how += f"; at the peak {manifest.kv_bytes_per_token} bytes of keys and values for each token of the context"
    return MemoryNeed(load_mb=load_mb, peak_mb=round(load_mb + cache_mb, 1), estimated=True, how=how)


_NUMBER_FORMATS = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
_STORED_FORMATS = {"BF16": "bf16", "F16": "f16", "F32": "f32"}
_LANGUAGE = re.compile(r"(ForCausalLM|LMHeadModel)$")
# Parts that stay precise where the rest is quantized at load, as the transformers engine does.
_PRECISE = re.compile(r"embed|lm_head|visual|vision_model|vision_tower|connector|multi_modal_projector")
_MAX_HEADER_BYTES = 100_000_000
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def find_checkpoint(folder: Path, names: list[str]) -> FoundModel:
    """Describe a folder with config.json and safetensors; raise ConfigError with what is missing."""
    config = _read_json(folder / "config.json")
    weights = sorted(name for name in names if name.endswith(".safetensors"))
    if not weights:
        raise ConfigError(
            f"{folder}: holds config.json and no .safetensors file; save the model with "
            "save_pretrained(..., safe_serialization=True), because pickled weights are not loaded"
        )
    _check_shards(folder, weights)
    if not any(name in names for name in _TOKENIZERS):
        raise ConfigError(f"{folder}: holds no tokenizer; copy tokenizer.json and tokenizer_config.json beside it")
    facts = facts_of_config(config, str(folder / "config.json"))
    tensors = {
        name: entry for file in weights for name, entry in read_safetensors_header(folder / file).entries.items()
    }
    if not config.get("quantization_config"):  # packed weights hide their number and format
        facts |= _count({name: entry["shape"] for name, entry in tensors.items()})
        formats = Counter(_STORED_FORMATS.get(entry["dtype"], "") for entry in tensors.values())
        facts["quantization"] = max(formats, key=lambda name: formats[name], default="") or facts["quantization"]
    engine = EngineKind.ENCODER if facts["task"] is Task.SENTENCE_MEANING else EngineKind.TRANSFORMERS
    return FoundModel(
        engine=engine,
        task=facts.pop("task"),
        folder=folder,
        files=tuple(names),
        fields={**facts, "licence": _licence(folder)},
    )


@record
class SafetensorsHeader:
    """The entries by tensor name, what the file says of itself, and where the tensors begin."""

    entries: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    tensors_at: int


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read a file's header; raise EngineFailedError if the file is not whole."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER_BYTES:
                raise ValueError(f"its header has {length} bytes")
            header = json.loads(stream.read(length))
        metadata = {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        ends_at = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if (size := path.stat().st_size) < ends_at:
            raise ValueError(f"it has {size} of {ends_at} bytes")
    except OSError as error:
        raise EngineFailedError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise EngineFailedError(f"{path}: is no whole safetensors file: {error}; download it again") from error
    return SafetensorsHeader(entries=entries, metadata=metadata, tensors_at=8 + length)


def facts_of_config(config: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return what config.json states: the task, and fields of the manifest; `place` names it in errors."""
    try:
        return _facts(config, place)
    except (AttributeError, TypeError, ZeroDivisionError) as error:
        raise ConfigError(f"{place}: an entry has a wrong type ({error}); download it again") from error


def _facts(config: Mapping[str, Any], place: str) -> dict[str, Any]:
    text = config.get("text_config") or config
    architecture = next(iter(config.get("architectures") or ()), "")
    images = 0
    if config.get("vision_config"):
        task, images = Task.VISION_LANGUAGE, MAX_IMAGES
    elif _LANGUAGE.search(architecture):
        task = Task.LANGUAGE
    elif config.get("model_type") == "bert":
        task = Task.SENTENCE_MEANING
    else:
        kind = architecture or config.get("model_type") or "model without a type"
        raise ConfigError(
            f"{place}: a {kind} neither writes nor scores text; name a causal or image-text-to-text model, or for "
            "Whisper a folder that ct2-transformers-converter has written"
        )
    heads, width = text.get("num_attention_heads"), text.get("hidden_size")
    head_size = text.get("head_dim") or (width // heads if heads and width else None)
    context = text.get("max_position_embeddings")
    is_encoder = task is Task.SENTENCE_MEANING
    return {
        "task": task,
        "quantization": _quantization(config, text),
        "kv_bytes_per_token": None
        if is_encoder
        else key_value_bytes(text.get("num_hidden_layers"), text.get("num_key_value_heads") or heads, head_size),
        "context_tokens": min(context, MAX_CONTEXT_TOKENS) if isinstance(context, int) and context > 0 else None,
        "max_images": None if is_encoder else images,
    }


def _quantization(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    stored = config.get("quantization_config")
    if stored:
        return str(stored.get("quant_method", "quantized"))
    stated = (part.get(key) for part in (config, text) for key in ("dtype", "torch_dtype"))
    return _NUMBER_FORMATS.get(str(next(filter(None, stated), "")), "bf16")


def _count(shapes: Mapping[str, list[int]]) -> dict[str, float]:
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    precise = sum(size for name, size in sizes.items() if len(shapes[name]) != 2 or _PRECISE.search(name))
    counted = {"parameters_million": sum(sizes.values()) / 1e6, "precise_million": precise / 1e6}
    return {key: round(value, 3) for key, value in counted.items() if value >= 0.001}


def _check_shards(folder: Path, weights: list[str]) -> None:
    """Raise ConfigError if an index names a file that is missing."""
    for index in sorted(folder.glob("*.safetensors.index.json")):
        named = set(_read_json(index).get("weight_map", {}).values())
        if missing := sorted(named - set(weights)):
            raise ConfigError(f"{folder}: {missing[0]} is missing, and {index.name} names it; download the whole model")


def _licence(folder: Path) -> str:
    """Return the licence that the model card's front matter states; empty if there is none."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace")[:20_000] if card.is_file() else ""
    front = text.split("\n---", 1)[0] if text.startswith("---") else ""
    match = re.search(r"^license: *['\"]?([\w.+-]+)", front, re.MULTILINE)
    return match[1] if match else ""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON ({error}); download it again") from error
    if not isinstance(read, dict):
        raise ConfigError(f"{path}: is no configuration of a model; download it again")
    return read
