"""Open an engine from a manifest: verify the weights, check the memory, and import the backend."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import Backend
from norm_core.engines.errors import EngineFailedError, InvalidRequestError, ModelMemoryError, is_out_of_memory
from norm_core.engines.settings import OpenAISettings, TransformersSettings
from norm_core.models.estimate import CUDA_CONTEXT_MB, MEMORY_SHARE, doubles_on_cpu
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest
from norm_core.models.store import ModelFiles, Store
from norm_core.runtime.config import C, check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import format_install_command
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock

# The name of the memory of a CPU in messages.
MAIN_MEMORY = "memory"
# The number formats, which transformers loads unchanged; all other values are quantizations.
_DTYPES = {"bf16", "f16", "f32"}


def open_engine(manifest: Manifest, clock: Clock, *, store: Store | None = None) -> DirectEngine:
    """Return the engine for a manifest.

    Raises a TactfulError if the weights are missing or damaged, or if the model cannot be loaded.
    """
    if manifest.engine not in OPENERS:
        kinds = ", ".join(OPENERS)
        raise InvalidRequestError(
            f"{manifest.name} runs on {manifest.engine}, which answers no questions; name a model for {kinds}"
        )
    weights = (store or Store()).open_files(manifest)
    try:
        check_memory(manifest)
        backend = OPENERS[manifest.engine](manifest, weights)
    except TactfulError:
        raise
    except ImportError as error:
        package = error.name or str(error)
        remedy = (
            f"; install it with {format_install_command(EXTRAS[manifest.engine])}" if manifest.engine in EXTRAS else ""
        )
        raise EngineFailedError(
            f"the {manifest.engine} engine needs {package}, which is not installed{remedy}"
        ) from error
    except MemoryError as error:
        need = manifest.memory
        needs = f": it needs about {need.peak_mb:.0f} MB{' (estimated)' if need.estimated else ''}" if need else ""
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{needs}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name}: cannot be loaded: {type(error).__name__}: {error}") from error
    return DirectEngine(backend, clock)


def check_memory(manifest: Manifest) -> None:
    """Raise ModelMemoryError if a model in this process does not fit at its peak, and ConfigError for bad settings."""
    need = manifest.memory
    if need is None or manifest.engine is EngineKind.OPENAI:
        return
    memory_name, free_mb = measure_free_memory(manifest)
    need_mb = need.peak_mb
    if memory_name == MAIN_MEMORY:
        need_mb *= 2 if doubles_on_cpu(manifest) else 1
    elif need.estimated:  # A measured peak is complete. The CUDA context of transformers exists already.
        context_mb = CUDA_CONTEXT_MB if manifest.engine is EngineKind.TRANSFORMERS else 0.0
        need_mb = max(need_mb, need_mb / MEMORY_SHARE - context_mb)
    if need_mb > free_mb:
        raise ModelMemoryError(
            f"{manifest.name} needs {need_mb:.0f} MB{' (estimated)' if need.estimated else ''}, and {free_mb:.0f} MB "
            f"of {memory_name} are free; choose another ({PROGRAM} models list), or stop what else uses the memory"
        )


def measure_free_memory(manifest: Manifest) -> tuple[str, float]:
    """Return the name of the memory for a model, "memory" or a GPU such as "GPU 0", and its free MB of 10^6 bytes."""
    gpu = None
    if manifest.engine is EngineKind.TRANSFORMERS:
        device = _read_settings(TransformersSettings, manifest).device
        gpu = None if device == "cpu" else _ask_torch_for_gpu(int(device.partition(":")[2] or 0))
    return gpu or (MAIN_MEMORY, measure_free_ram_mb())


def measure_free_ram_mb() -> float:
    """Return the available memory of the machine, or of the process's container if that is less."""
    meminfo = Path("/proc/meminfo").read_text(encoding="utf-8")
    free_bytes = next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable")) * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit_bytes, used_bytes = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        caches = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        free_bytes = min(free_bytes, limit_bytes - used_bytes + int(caches.get("inactive_file", 0)))
    except (OSError, ValueError):
        pass  # There is no container with a limit.
    return free_bytes / 1e6


def _ask_torch_for_gpu(index: int) -> tuple[str, float] | None:
    """Return name and free MB of a GPU from torch, which knows the GPUs of this process; None without one."""
    if find_spec("torch") is None:
        return None
    import torch  # noqa: PLC0415  takes seconds, and the default environment lacks it

    if not torch.cuda.is_available():
        return None
    try:
        # This call makes the CUDA context of the process, if it does not exist yet.
        free_mb = torch.cuda.mem_get_info(index)[0] / 1e6
        # A Jetson has one memory, from which caches are dropped.
        if torch.cuda.get_device_properties(index).is_integrated:
            free_mb = max(free_mb, measure_free_ram_mb())
        # What torch holds in reserve is free for this process's next model.
        free_mb += (torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)) / 1e6
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        free_mb = 0.0  # The question itself takes some hundred MB, which are not free.
    # Another process may count the GPUs differently, so the message has the name of the driver.
    visible_names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    name = visible_names[index] if index < len(visible_names) and visible_names[index] else str(index)
    return f"GPU {name}", free_mb


def open_transformers(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a checkpoint; bf16, f16 and f32 are number formats, other quantizations are passed on by name."""
    from norm_core.engines.transformers.backend import TransformersBackend  # noqa: PLC0415

    settings = _read_settings(TransformersSettings, manifest)
    if weights.folder is None:
        raise EngineFailedError(f"{manifest.name}: a url is for the openai engine, not for {manifest.engine}")
    return TransformersBackend(
        weights.folder,
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


def open_openai(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Connect to a server. Its weights are unknown, so the model information has no hash."""
    from norm_core.engines.openai.backend import OpenAIBackend  # noqa: PLC0415
    from norm_core.engines.openai.client import OpenAIServer  # noqa: PLC0415

    settings = _read_settings(OpenAISettings, manifest)
    if not manifest.source.url:
        raise EngineFailedError(f"{manifest.name}: source: an openai engine needs the url of a server")
    server = OpenAIServer(
        manifest.source.url, api_key_variable=settings.api_key_variable, tries=settings.tries, stall_s=settings.stall_s
    )
    return OpenAIBackend(
        server,
        settings.model or manifest.name,
        settings=settings,
        max_images=manifest.max_images,
        context_tokens=manifest.context_tokens,
        quantization=manifest.quantization,
    )


def open_encoder(manifest: Manifest, weights: ModelFiles) -> Backend[Any]:
    """Load a sentence encoder."""
    from norm_core.engines.sentences.sentence_encoder import open_backend  # noqa: PLC0415

    return open_backend(manifest)


# Each function imports its packages, and frees its memory if it raises. `weights.folder` has the verified files of the
# manifest, and is None for a server.
OPENERS: dict[EngineKind, Callable[[Manifest, ModelFiles], Backend[Any]]] = {
    EngineKind.TRANSFORMERS: open_transformers,
    EngineKind.OPENAI: open_openai,
    EngineKind.ENCODER: open_encoder,
}


def _read_settings(kind: type[C], manifest: Manifest) -> C:
    return check_config(kind, manifest.settings, f"{manifest.name}: settings")
