"""Open an engine from a manifest: verify the weights, check that memory suffices, and import the backend."""

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import Backend
from norm_core.engines.errors import EngineFailedError, InvalidRequestError, ModelMemoryError, is_out_of_memory
from norm_core.engines.settings import OpenAISettings, TransformersSettings
from norm_core.models.estimate import CUDA_CONTEXT_MB, MEMORY_SHARE, doubles_on_a_cpu
from norm_core.models.machine import free_ram_mb
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest
from norm_core.models.store import ModelFiles, Store
from norm_core.runtime.config import C, check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock

MAIN_MEMORY = "memory"
# Number formats, which transformers loads unchanged; all others are quantizations.
_DTYPES = {"bf16", "f16", "f32"}


def open_engine(manifest: Manifest, clock: Clock, *, store: Store | None = None) -> DirectEngine:
    """Return the engine for a manifest; raise a TactfulError if its weights are missing or damaged."""
    if manifest.engine not in OPENERS:
        kinds = ", ".join(OPENERS)
        raise InvalidRequestError(f"{manifest.name} runs on {manifest.engine} and answers no questions; {kinds} do")
    weights = (store or Store()).open(manifest)
    try:
        check_memory(manifest)
        backend = OPENERS[manifest.engine](manifest, weights)
    except TactfulError:
        raise
    except ImportError as error:
        missing = error.name or str(error)
        remedy = (
            f"; install it with {format_install_command(EXTRAS[manifest.engine])}" if manifest.engine in EXTRAS else ""
        )
        raise EngineFailedError(
            f"the {manifest.engine} engine needs {missing}, which is not installed{remedy}"
        ) from error
    except MemoryError as error:
        need = manifest.memory
        needs = f": it needs about {need.peak_mb:.0f} MB{' (estimated)' if need.estimated else ''}" if need else ""
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{needs}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name}: cannot be loaded: {type(error).__name__}: {error}") from error
    return DirectEngine(backend, clock)


def check_memory(manifest: Manifest) -> None:
    """Raise ModelMemoryError if a model in this process does not fit at its peak, and ConfigError for its settings."""
    need = manifest.memory
    if need is None or manifest.engine is EngineKind.OPENAI:
        return
    place, free_mb = free_memory_mb(manifest)
    need_mb = need.peak_mb
    if place == MAIN_MEMORY:
        need_mb *= 2 if doubles_on_a_cpu(manifest) else 1
    elif need.estimated:  # a measured peak has all, and transformers has made its context before it asks
        context_mb = CUDA_CONTEXT_MB if manifest.engine is EngineKind.TRANSFORMERS else 0.0
        need_mb = max(need_mb, need_mb / MEMORY_SHARE - context_mb)
    if need_mb > free_mb:
        raise ModelMemoryError(
            f"{manifest.name} needs {need_mb:.0f} MB{' (estimated)' if need.estimated else ''}, and {free_mb:.0f} MB "
            f"of {place} are free; choose another ({PROGRAM} models choose), or stop what else uses the memory"
        )


def free_memory_mb(manifest: Manifest) -> tuple[str, float]:
    """Return where a model will load, "memory" or a GPU such as "GPU 0", and the MB of 10^6 bytes free there."""
    gpu = None
    if manifest.engine is EngineKind.TRANSFORMERS:
        device = _settings(TransformersSettings, manifest).device
        gpu = None if device == "cpu" else _torch_gpu(int(device.partition(":")[2] or 0))
    return gpu or (MAIN_MEMORY, free_ram_mb())


def _torch_gpu(index: int) -> tuple[str, float] | None:
    """Ask the driver through torch, which knows the GPUs that this process may use."""
    if find_spec("torch") is None:
        return None
    import torch  # noqa: PLC0415  takes seconds, and the default environment lacks it

    if not torch.cuda.is_available():
        return None
    try:
        free_mb = torch.cuda.mem_get_info(index)[0] / 1e6  # less this process's CUDA context, made here at the latest
        if torch.cuda.get_device_properties(index).is_integrated:  # as a Jetson's: one memory, of which caches give way
            free_mb = max(free_mb, free_ram_mb())
        # What torch holds in reserve is free for this process's next model.
        free_mb += (torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)) / 1e6
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        free_mb = 0.0  # too full to be asked, which takes some hundred MB itself
    # Another process may count the GPUs differently, so the message has the driver's name of it.
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    name = visible[index] if index < len(visible) and visible[index] else str(index)
    return f"GPU {name}", free_mb


def open_transformers(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a checkpoint; bf16, f16 and f32 are number formats, other quantizations are passed on by name."""
    settings, folder = _settings(TransformersSettings, manifest), weights.folder
    if folder is None:
        raise EngineFailedError(f"{manifest.name}: a url is for the openai engine, not for {manifest.engine}")
    backend: Backend[Any] = import_module("norm_core.engines.transformers.backend").TransformersBackend(
        folder,
        gguf_file=_gguf_file(manifest, folder) if manifest.reads_gguf else "",
        model=manifest.name,
        dtype=settings.dtype,
        quantization="" if manifest.quantization in _DTYPES else manifest.quantization,
        device=settings.device,
        context_tokens=manifest.context_tokens,
        max_images=manifest.max_images,
        picture_tokens=manifest.picture_tokens,
        weights_sha256=weights.sha256,
        picture_cache_mb=settings.picture_cache_mb,
    )
    return backend


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
    backend: Backend[Any] = backend_module.OpenAIBackend(
        server,
        settings.model or manifest.name,
        settings=settings,
        max_images=manifest.max_images,
        context_tokens=manifest.context_tokens,
        quantization=manifest.quantization,
    )
    return backend


def open_encoder(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a sentence encoder."""
    backend: Backend[Any] = import_module("norm_core.engines.sentences.sentence_encoder").open_backend(manifest)
    return backend


# Each function imports its packages, and holds no memory after an exception. `weights.folder` holds the manifest's
# verified files, and is None for a server.
OPENERS: dict[EngineKind, Callable[[Manifest, ModelFiles], Backend[Any]]] = {
    EngineKind.TRANSFORMERS: open_transformers,
    EngineKind.OPENAI: open_openai,
    EngineKind.ENCODER: open_encoder,
}


def _settings(kind: type[C], manifest: Manifest) -> C:
    return check_config(kind, manifest.settings, f"{manifest.name}: settings")


def _gguf_file(manifest: Manifest, folder: Path) -> str:
    """Return the one GGUF file of the manifest; its folder may hold others of the repository."""
    patterns = [file.path for file in manifest.files] or manifest.source.include
    names = sorted({path.name for pattern in patterns for path in folder.glob(pattern) if path.suffix == ".gguf"})
    if len(names) != 1:
        raise EngineFailedError(f"{manifest.name}: one GGUF file is needed, not {', '.join(names) or 'none'}")
    return names[0]
