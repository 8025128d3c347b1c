"""Find the model in a file or folder, and the files that it needs."""

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from norm_core.models.detection.checkpoint import find_checkpoint
from norm_core.models.detection.found_model import MAX_CONTEXT_TOKENS, FoundModel, key_value_bytes
from norm_core.models.detection.gguf import find_gguf
from norm_core.models.manifest import EngineKind, ModelSource, Task
from norm_core.models.store import LOCK_NAME
from norm_core.runtime.config import ConfigError

_OF_A_CHECKPOINT: tuple[str, ...] = ModelSource.model_fields["include"].default
_KINDS = "a transformers checkpoint (config.json and .safetensors), a .gguf or .onnx file, or a converted model"


def find_model(path: Path, include: Sequence[str] = ()) -> FoundModel:
    """Describe the model at a path; `include` chooses among a folder's files, or adds some beside a file."""
    folder = path if path.is_dir() else path.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and entry.name != LOCK_NAME)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}; check its permissions") from error
    chosen = _chosen(names, include)
    if path.is_dir():
        return _in_folder(folder, chosen or names)
    match path.suffix.lower():
        case ".gguf":
            return find_gguf(folder, sorted({path.name, *chosen}))
        case ".onnx":
            return _onnx(folder, path.name, names, chosen)
        case ".safetensors" | ".json":
            raise ConfigError(f"{path}: is one file of a checkpoint; add its folder {folder}")
    raise ConfigError(f"{path}: is not {_KINDS}; convert the model, or name another file")


def _in_folder(folder: Path, names: list[str]) -> FoundModel:
    ggufs = [name for name in names if name.endswith(".gguf")]
    graphs = [name for name in names if name.endswith(".onnx")]
    if "adapter_config.json" in names:
        raise ConfigError(
            f"{folder}: is a LoRA adapter, which is not loaded alone; merge it into its base model "
            "(peft: merge_and_unload, save_pretrained) and add the merged folder"
        )
    if "genai_config.json" in names:
        return _genai(folder, names)
    if {"model.bin", "config.json"} <= set(names) and any(name.startswith("vocabulary") for name in names):
        return _ctranslate2(folder, names)
    if "config.json" in names and (not (ggufs or graphs) or any(name.endswith(".safetensors") for name in names)):
        return find_checkpoint(folder, _matching(names, _OF_A_CHECKPOINT))
    if ggufs:
        return find_gguf(folder, ggufs)
    if "model.onnx" in graphs or len(graphs) == 1:
        return _onnx(folder, "model.onnx" if "model.onnx" in graphs else graphs[0], names, [])
    if graphs:
        raise ConfigError(f"{folder}: holds {', '.join(graphs)}; add one of these files")
    raise ConfigError(f"{folder}: holds no model that is known: {_KINDS}; name the folder with these files")


def _onnx(folder: Path, name: str, names: list[str], chosen: list[str]) -> FoundModel:
    """Describe a graph; one from tokens to a vector, with its tokenizer beside it, is a sentence encoder."""
    from norm_core.engines.onnx.session import open_session  # noqa: PLC0415  a fifth of a second

    session = open_session(folder / name)
    data = [other for other in names if other in (f"{name}.data", f"{name}_data")]
    if name == "model.onnx" and set(session.inputs) == {"tokens"} and "vector" in session.outputs:
        if "tokenizer.json" not in names:
            raise ConfigError(f"{folder}: holds no tokenizer.json; copy it beside model.onnx")
        files, engine, task = (name, *data, "tokenizer.json"), EngineKind.ENCODER, Task.SENTENCE_MEANING
    else:
        files, engine, task = (name, *data, *chosen), EngineKind.ONNX, None
    return FoundModel(engine=engine, task=task, folder=folder, files=files, fields={"quantization": "unknown"})


def _genai(folder: Path, names: list[str]) -> FoundModel:
    """Describe a folder that the model builder of onnxruntime-genai wrote."""
    try:
        model = json.loads((folder / "genai_config.json").read_bytes())["model"]
        decoder, context = model["decoder"], int(model["context_length"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder / 'genai_config.json'}: is not whole ({error!r}); build the model again") from error
    layers, heads = decoder.get("num_hidden_layers"), decoder.get("num_key_value_heads")
    fields = {
        "quantization": "unknown",
        "context_tokens": min(context, MAX_CONTEXT_TOKENS),
        "kv_bytes_per_token": key_value_bytes(layers, heads, decoder.get("head_size")),
        "max_images": 0,
    }
    return FoundModel(engine=EngineKind.GENAI, task=Task.LANGUAGE, folder=folder, files=tuple(names), fields=fields)


def _ctranslate2(folder: Path, names: list[str]) -> FoundModel:
    files = _matching(names, ("model.bin", "*.json", "vocabulary*"))
    fields = {"quantization": "unknown"}
    return FoundModel(
        engine=EngineKind.CTRANSLATE2, task=Task.SPEECH_TO_TEXT, folder=folder, files=tuple(files), fields=fields
    )


def _chosen(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that a user's patterns choose; raise ConfigError for a pattern that chooses none."""
    for pattern in patterns:
        if not _matching(names, (pattern,)):
            raise ConfigError(f"--include: no file matches {pattern}; there are {', '.join(names) or 'none'}")
    return _matching(names, patterns)


def _matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
