"""Find what a hub's repository holds, by its files and config.json, and what an OpenAI-compatible server lists."""

import json
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from pydantic import BaseModel, ValidationError

from norm_core.engines.openai.address import check_server_url, is_on_this_machine
from norm_core.engines.openai.api_key import ApiKey
from norm_core.models.detection.checkpoint import facts_of_config
from norm_core.models.detection.find_model import check_gguf
from norm_core.models.download import DownloadSettings, FileRequest, fetch, wanted_files
from norm_core.models.manifest import EngineKind, ModelSource, Task
from norm_core.runtime.config import ConfigError

_LISTED = ("*.json", "*.safetensors", "*.gguf", "*.bin", "*.onnx")
_BYTES = {"bf16": 2, "f16": 2, "f32": 4}
_WEIGHTS: tuple[str, ...] = ModelSource.model_fields["include"].default
_TIMEOUT_S = 10.0
# How to constrain an answer to a letter, by the name that a server gives itself.
_GUIDES = {"vllm": "structured_outputs", "llamacpp": "grammar"}


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
    """Return fields of a manifest for a chosen GGUF file. Raises ConfigError for what only a server reads."""
    check_gguf(names)
    return {
        "engine": EngineKind.TRANSFORMERS,
        "task": Task.LANGUAGE,
        "quantization": "gguf",
        "max_images": 0,
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


class _Served(BaseModel):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None


class _ServedList(BaseModel):
    data: list[_Served]


def find_served(url: str, model: str, api_key_variable: str) -> dict[str, Any]:
    """Return fields of a manifest; `model` chooses among several, and may stand alone where the server is down."""
    try:
        check_server_url(url)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    try:
        served = _listed(url, ApiKey(api_key_variable))
    except ConfigError as error:
        if not model:
            raise ConfigError(f"{error}; mend that, or name the model with --served-model") from error
        served = [_Served(id=model)]
    chosen = [entry for entry in served if model in ("", entry.id)]
    if len(chosen) != 1:
        raise ConfigError(f"{url}: serves {', '.join(entry.id for entry in served)}; name one with --served-model")
    settings = {"model": chosen[0].id, "api_key_variable": api_key_variable, "guide": _GUIDES.get(chosen[0].owned_by)}
    return {
        "engine": EngineKind.OPENAI,
        "source": {"url": url},
        "quantization": "unknown",
        "context_tokens": chosen[0].max_model_len,
        "settings": {key: value for key, value in settings.items() if value},
    }


def _listed(url: str, key: ApiKey) -> list[_Served]:
    try:
        with httpx2.Client(headers=key.headers, timeout=_TIMEOUT_S, trust_env=not is_on_this_machine(url)) as client:
            answer = client.get(f"{url.rstrip('/')}/models").raise_for_status()
        return _ServedList.model_validate_json(key.redact_bytes(answer.content)).data
    except httpx2.HTTPStatusError as error:
        code = error.response.status_code
        remedy = "state the variable with its key as --api-key-variable" if code in (401, 403) else "check the address"
        raise ConfigError(f"{url}/models: answers with status {code}; {remedy}") from error
    except httpx2.HTTPError as error:
        raise ConfigError(f"{url}: cannot be reached ({key.redact(str(error)) or type(error).__name__})") from error
    except (httpx2.InvalidURL, ValidationError, ValueError) as error:
        raise ConfigError(
            f"{url}/models: lists no models; give the address of the API, as http://HOST:8000/v1"
        ) from error
