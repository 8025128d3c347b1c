"""Find what a hub's repository holds, by its list of files and its config.json."""

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from norm_core.models.detection.checkpoint import facts_of_config
from norm_core.models.download import DownloadSettings, FileRequest, fetch
from norm_core.models.hub import wanted_files
from norm_core.models.manifest import EngineKind, ModelSource, Task
from norm_core.runtime.config import ConfigError

_LISTED = ("*.json", "*.safetensors", "*.gguf", "*.bin", "*.onnx")
_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
_WEIGHTS: tuple[str, ...] = ModelSource.model_fields["include"].default


def find_on_hub(
    repository: str, revision: str, include: Sequence[str], server: str, settings: DownloadSettings
) -> dict[str, Any]:
    """Return fields of a manifest; raise PullError if the hub cannot be asked, ConfigError if there is no model."""
    _, listed = wanted_files(repository, revision or "main", (*_LISTED, *include), server, settings)
    files = {file.path: file for file in listed}
    chosen = [name for name in files if any(fnmatch(name, pattern) for pattern in include)]
    ggufs = [name for name in files if name.endswith(".gguf")]
    if "adapter_config.json" in files:
        raise ConfigError(f"{repository}: is a LoRA adapter; merge it into its base model, and add the merged folder")
    if include and not chosen:
        raise ConfigError(f"--include: no file of {repository} matches; there are {', '.join(sorted(files))}")
    if any(name.endswith(".gguf") for name in chosen):
        return gguf_fields(include, chosen)
    weights = [file for name, file in files.items() if fnmatch(name, "*.safetensors") and "/" not in name]
    if "config.json" not in files or not weights:
        remedy = f"choose one with --include, as {ggufs[0]}" if ggufs else "name a repository that holds them"
        raise ConfigError(f"{repository}: holds no config.json with .safetensors; {remedy}")
    facts = facts_of_config(_fetched_json(files["config.json"], settings), f"{repository}: config.json")
    if facts["task"] is Task.SENTENCE_MEANING:
        raise ConfigError(f"{repository}: is a sentence encoder; download it, and add its folder")
    fields: dict[str, Any] = {"engine": EngineKind.TRANSFORMERS, **facts}
    sizes = [file.size_bytes for file in weights]
    if (width := _BYTES.get(facts["quantization"])) and None not in sizes:
        fields["parameters_million"] = round(sum(size or 0 for size in sizes) / width / 1e6, 3) or None
    if include:
        fields["include"] = tuple(dict.fromkeys((*_WEIGHTS, *include)))
    return fields


def gguf_fields(include: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return fields of a manifest for chosen GGUF files."""
    sees = any("mmproj" in name for name in names)
    return {
        "engine": EngineKind.LLAMA_CPP,
        "task": Task.VISION_LANGUAGE if sees else Task.LANGUAGE,
        "quantization": "gguf",
        "max_images": None if sees else 0,
        "include": tuple(include),
    }


def _fetched_json(wanted: FileRequest, settings: DownloadSettings) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        fetch(wanted, Path(folder), settings)
        try:
            read = json.loads(Path(folder, wanted.path).read_bytes())
        except ValueError as error:
            raise ConfigError(f"{wanted.url}: is not JSON: {error}") from error
    return dict(read)
