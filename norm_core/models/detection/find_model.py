"""Find the model in a file or folder, and the files that it needs."""

import math
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from norm_core.engines.errors import EngineFailedError
from norm_core.models.detection.checkpoint import (
    MAX_CONTEXT_TOKENS,
    FoundModel,
    find_checkpoint,
    key_value_bytes,
)
from norm_core.models.gguf_file import GgufFile
from norm_core.models.manifest import EngineKind, ModelSource, Task
from norm_core.models.store import LOCK_NAME
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM

# The kinds of llama.cpp's general.file_type.
_QUANTIZATIONS = {
    0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 11: "q3_k_s", 12: "q3_k_m",
    13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m", 18: "q6_k", 19: "iq2_xxs", 20: "iq2_xs",
    21: "q2_k_s", 22: "iq3_xs", 23: "iq3_xxs", 24: "iq1_s", 25: "iq4_nl", 26: "iq3_s", 27: "iq3_m", 28: "iq2_s",
    29: "iq2_m", 30: "iq4_xs", 31: "iq1_m", 32: "bf16",
}  # fmt: skip
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def check_gguf(names: Sequence[str]) -> str:
    """Return the one GGUF file that holds a model of words. Raises ConfigError for others, which a server reads."""
    ggufs = [name for name in names if name.endswith(".gguf")]
    if any("mmproj" in name or _PART.search(name) for name in ggufs):
        raise ConfigError(
            f"{', '.join(sorted(ggufs))}: pictures and parts of a GGUF model are read by a server alone; start "
            f"llama-server with them, then give its address: {PROGRAM} models add http://HOST:8080/v1"
        )
    if len(ggufs) != 1:
        raise ConfigError(
            f"one GGUF file is needed, not {', '.join(sorted(ggufs)) or 'none'}; choose with --include NAME"
        )
    return ggufs[0]


def find_gguf(folder: Path, names: list[str]) -> FoundModel:
    """Describe the one model among a folder's GGUF files; raise ConfigError if there is none or a choice."""
    try:
        name = check_gguf(names)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from error
    header = _opened(folder / name)
    kind = header.metadata.get("general.type", "model")
    if kind != "model":
        raise ConfigError(f"{folder / name}: is a GGUF file of type {kind}; name the model that it belongs to")
    form = header.metadata.get("general.file_type")
    heads, width = header.of_architecture("attention.head_count"), header.of_architecture("embedding_length")
    head_size = width // heads if isinstance(heads, int) and heads and isinstance(width, int) else None
    context = header.of_architecture("context_length")
    return FoundModel(
        engine=EngineKind.TRANSFORMERS,
        task=Task.LANGUAGE,
        folder=folder,
        files=(name,),
        fields={
            "quantization": _QUANTIZATIONS.get(form, "gguf") if isinstance(form, int) else "gguf",
            "parameters_million": round(_parameters(header) / 1e6, 1) or None,
            "kv_bytes_per_token": key_value_bytes(
                header.of_architecture("block_count"),
                _key_value_heads(header, heads),
                header.of_architecture("attention.key_length") or head_size,
            ),
            "context_tokens": min(context, MAX_CONTEXT_TOKENS) if isinstance(context, int) and context else None,
            "max_images": 0,
            "licence": header.metadata.get("general.license", ""),
        },
    )


def _opened(path: Path) -> GgufFile:
    try:
        return GgufFile(path)
    except EngineFailedError as error:
        raise ConfigError(str(error)) from error


def _parameters(file: GgufFile) -> int:
    return sum(math.prod(shape) for shape in file.shapes.values())


def _key_value_heads(header: GgufFile, heads: object) -> object:
    """Return the heads of a layer; of layers that differ, the most."""
    stated = header.of_architecture("attention.head_count_kv")
    return max(stated) if isinstance(stated, list) and stated else stated or heads


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
