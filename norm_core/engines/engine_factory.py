"""Open an engine from a manifest: verify the weights, check that memory suffices, and import the backend."""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TextIO

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine_registry import OPENERS, check_answers
from norm_core.engines.errors import EngineFailedError, ModelMemoryError, is_out_of_memory
from norm_core.engines.settings import TransformersSettings
from norm_core.files.data_files import make_cache_folder
from norm_core.models.estimate import CUDA_CONTEXT_MB, MEMORY_SHARE, doubles_on_a_cpu
from norm_core.models.machine import free_ram_mb
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest
from norm_core.models.store import Store
from norm_core.records.record import record
from norm_core.runtime.config import check_config
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import install_command
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import Clock

# Loading a large model takes a minute or two; past that a load that hangs must not stop the others.
_WAIT_S, _LOOK_S = 180.0, 0.1
MAIN_MEMORY = "memory"

_log = logging.getLogger(__name__)


@record
class MemoryPlace:
    """Where a model's weights go: "memory", or a GPU such as "GPU 0"; and the MB of 10^6 bytes that are free there."""

    name: str
    free_mb: float


@contextmanager
def guard_load(manifest: Manifest) -> Iterator[None]:
    """Load a model inside the block; raise ModelMemoryError if its peak does not fit.

    One process loads at a time, so that what is free stays free until the weights are there.
    """
    if manifest.memory is None or manifest.engine is EngineKind.OPENAI:
        yield
        return
    with _load_lock():
        place = place_of(manifest)
        need_mb = _peak_mb(manifest, place.name)
        if need_mb > place.free_mb:
            raise ModelMemoryError(_refusal(manifest, place, need_mb))
        yield


def _peak_mb(manifest: Manifest, place: str) -> float:
    """Return what the model takes there at its peak; nothing for an unknown size."""
    need = manifest.memory
    if need is None:
        return 0.0
    if place != MAIN_MEMORY:  # a measured peak has all, and transformers has made its context before it asks
        context_mb = CUDA_CONTEXT_MB if manifest.engine is EngineKind.TRANSFORMERS else 0.0
        rest_mb = max(0.0, need.peak_mb / MEMORY_SHARE - need.peak_mb - context_mb) if need.estimated else 0.0
        return need.peak_mb + rest_mb
    return (2 if doubles_on_a_cpu(manifest) else 1) * need.peak_mb


def _refusal(manifest: Manifest, place: MemoryPlace, need_mb: float) -> str:
    estimated = " (estimated)" if manifest.memory and manifest.memory.estimated else ""
    return (
        f"{manifest.name} needs {need_mb:.0f} MB{estimated}, and {place.free_mb:.0f} MB of {place.name} are free; "
        f"choose another ({PROGRAM} models choose), or stop what else uses the memory"
    )


@contextmanager
def _load_lock() -> Iterator[None]:
    """Hold the lock of those who load; go on without it where it cannot be had, or not in time."""
    with ExitStack() as opened:
        try:
            lock = make_cache_folder("engines") / "loading"
            lock.parent.mkdir(parents=True, exist_ok=True)
            stream = opened.enter_context(lock.open("w"))
            until_s = time.monotonic() + _WAIT_S
            while not _locks(stream):
                if time.monotonic() > until_s:
                    _log.warning("the model loads beside another that has been loading for %.0f s", _WAIT_S)
                    break
                time.sleep(_LOOK_S)
        except OSError as error:  # as on a network's file system without locks
            _log.warning("the model loads without waiting for others that load: %s", error)
        yield


def _locks(stream: TextIO) -> bool:
    """Lock a file; return False where another process holds it."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def place_of(manifest: Manifest) -> MemoryPlace:
    """Return where the manifest's model will load, and what is free there; raise ConfigError for wrong settings."""
    about = f"{manifest.name}: settings"
    match manifest.engine:
        case EngineKind.TRANSFORMERS:
            device = check_config(TransformersSettings, manifest.settings, about).device
            gpu = None if device == "cpu" else _torch_gpu(int(device.partition(":")[2] or 0))
        case _:
            gpu = None
    return gpu or MemoryPlace(name=MAIN_MEMORY, free_mb=free_ram_mb())


def _torch_gpu(index: int) -> MemoryPlace | None:
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
    return MemoryPlace(name=f"GPU {_driver_index(index)}", free_mb=free_mb)


def _driver_index(index: int) -> str:
    """Return the driver's name of a GPU that this process counts as `index`; other processes may count differently."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return visible[index] if index < len(visible) and visible[index] else str(index)


def open_engine(manifest: Manifest, clock: Clock, *, store: Store | None = None) -> DirectEngine:
    """Return the engine for a manifest; raise a TactfulError if its weights are missing or damaged."""
    check_answers(manifest)
    weights = (store or Store()).open(manifest)
    try:
        with guard_load(manifest):
            backend = OPENERS[manifest.engine](manifest, weights)
    except TactfulError:
        raise
    except ImportError as error:
        missing = error.name or str(error)
        remedy = f"; install it with {install_command(EXTRAS[manifest.engine])}" if manifest.engine in EXTRAS else ""
        raise EngineFailedError(
            f"the {manifest.engine} engine needs {missing}, which is not installed{remedy}"
        ) from error
    except MemoryError as error:
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{_needs(manifest)}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name}: cannot be loaded: {type(error).__name__}: {error}") from error
    return DirectEngine(backend, clock)


def _needs(manifest: Manifest) -> str:
    if manifest.memory is None:
        return ""
    return f": it needs about {manifest.memory.peak_mb:.0f} MB{' (estimated)' if manifest.memory.estimated else ''}"
