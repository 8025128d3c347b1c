"""The backend factories by engine kind; each imports its packages on first use."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from norm_core.engines.engine import Backend
from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.settings import OpenAISettings, TransformersSettings
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.store import ModelFiles
from norm_core.runtime.config import C, check_config

# Formats that transformers loads unchanged; all others are quantizations.
_DTYPES = {"bf16": "bf16", "f16": "float16", "f32": "float32"}


class BackendFactory(Protocol):
    """Load a manifest's model; on any exception, hold no memory.

    `weights.folder` holds the manifest's verified files, and `weights.sha256` becomes part of the model information.
    For a server the folder is None and the address is `manifest.source.url`. The factory validates the settings that it
    reads.
    """

    def __call__(self, manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
        """Load the model from verified files, or connect to its server."""


def check_answers(manifest: Manifest) -> None:
    """Raise InvalidRequestError if the model's engine answers no questions."""
    if manifest.engine not in OPENERS:
        kinds = ", ".join(OPENERS)
        raise InvalidRequestError(f"{manifest.name} runs on {manifest.engine} and answers no questions; {kinds} do")


def open_transformers(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a checkpoint; bf16, f16 and f32 are number formats, other quantizations are passed on by name."""
    settings = _settings(TransformersSettings, manifest)
    # 16-bit numbers are slow and inexact on a CPU: "auto" leaves the choice to the engine.
    folder = _folder(manifest, weights)
    opened: Backend[Any] = import_module("norm_core.engines.transformers.backend").TransformersBackend(
        folder,
        gguf_file=_gguf_file(manifest, folder) if manifest.reads_gguf else "",
        model=manifest.name,
        dtype=settings.dtype,
        quantization=_quantization(manifest),
        device=settings.device,
        context_tokens=manifest.context_tokens,
        max_images=manifest.max_images,
        picture_tokens=manifest.picture_tokens,
        weights_sha256=weights.sha256,
        picture_cache_mb=settings.picture_cache_mb,
    )
    return opened


def open_openai(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Connect to a server. Its weights are unknown, so the model information has no hash."""
    settings = _settings(OpenAISettings, manifest)
    server_module = import_module("norm_core.engines.openai.client")
    backend_module = import_module("norm_core.engines.openai.backend")
    if not manifest.source.url:
        raise EngineFailedError(f"{manifest.name}: source: an openai engine needs the url of a server")
    server = server_module.OpenAIServer(
        manifest.source.url, api_key_variable=settings.api_key_variable, tries=settings.tries, stall_s=settings.stall_s
    )
    opened: Backend[Any] = backend_module.OpenAIBackend(
        server,
        settings.model or manifest.name,
        settings=settings,
        max_images=manifest.max_images,
        context_tokens=manifest.context_tokens,
        quantization=manifest.quantization,
    )
    return opened


def open_encoder(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a sentence encoder's backend; its module is imported on this call."""
    opened: Backend[Any] = import_module("norm_core.engines.sentences.sentence_encoder").open_backend(manifest, weights)
    return opened


OPENERS: dict[EngineKind, BackendFactory] = {
    EngineKind.TRANSFORMERS: open_transformers,
    EngineKind.OPENAI: open_openai,
    EngineKind.ENCODER: open_encoder,
}


def _settings(kind: type[C], manifest: Manifest) -> C:
    return check_config(kind, manifest.settings, f"{manifest.name}: settings")


def _quantization(manifest: Manifest) -> str:
    return "" if manifest.quantization in _DTYPES else manifest.quantization


def _gguf_file(manifest: Manifest, folder: Path) -> str:
    """Return the one GGUF file of the manifest; its folder may hold others of the repository."""
    patterns = [file.path for file in manifest.files] or manifest.source.include
    names = sorted({path.name for pattern in patterns for path in folder.glob(pattern) if path.suffix == ".gguf"})
    if len(names) != 1:
        raise EngineFailedError(f"{manifest.name}: one GGUF file is needed, not {', '.join(names) or 'none'}")
    return names[0]


def _folder(manifest: Manifest, weights: ModelFiles) -> Path:
    if weights.folder is None:
        raise EngineFailedError(f"{manifest.name}: a url is for the openai engine, not for {manifest.engine}")
    return weights.folder
