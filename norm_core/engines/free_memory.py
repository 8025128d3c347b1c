"""Ask the driver or the kernel how much memory is free now."""

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from norm_core.engines.engine_registry import LlamaCppSettings, TransformersSettings
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.records.record import record
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.config import check_config

MAIN_MEMORY = "memory"
_QUERY = ("--query-gpu=memory.free", "--format=csv,noheader,nounits")
_ASK_S = 10.0
_MIB = 1024 * 1024 / 1e6


@record
class MemoryPlace:
    """Where a model's weights go: "memory", or a GPU such as "GPU 0"; and the MB of 10^6 bytes that are free there."""

    name: str
    free_mb: float


def place_of(manifest: Manifest) -> MemoryPlace:
    """Return where the manifest's model will load, and what is free there; raise ConfigError for wrong settings."""
    about = f"{manifest.name}: settings"
    match manifest.engine:
        case EngineKind.TRANSFORMERS:
            device = check_config(TransformersSettings, manifest.settings, about).device
            gpu = None if device == "cpu" else _torch_gpu(int(device.partition(":")[2] or 0))
        case EngineKind.LLAMA_CPP:
            layers = check_config(LlamaCppSettings, manifest.settings, about).gpu_layers
            gpu = _driver_gpu() if layers else None
        case _:
            gpu = None
    return gpu or MemoryPlace(name=MAIN_MEMORY, free_mb=_free_ram_mb())


def _torch_gpu(index: int) -> MemoryPlace | None:
    """Ask the driver through torch, which knows the GPUs that this process may use."""
    if find_spec("torch") is None:
        return None
    import torch  # noqa: PLC0415  takes seconds, and the default environment lacks it

    if not torch.cuda.is_available():
        return None
    try:
        free_mb = torch.cuda.mem_get_info(index)[0] / 1e6
    except torch.OutOfMemoryError:  # too full to be asked, which takes some hundred MB itself
        return MemoryPlace(name=f"GPU {_driver_index(index)}", free_mb=0.0)
    if torch.cuda.get_device_properties(index).is_integrated:  # as on a Jetson: one memory, of which caches give way
        free_mb = max(free_mb, _free_ram_mb())
    return MemoryPlace(name=f"GPU {_driver_index(index)}", free_mb=free_mb)


def _driver_index(index: int) -> str:
    """Return the driver's name of a GPU that this process counts as `index`; other processes may count differently."""
    visible = [each.strip() for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return visible[index] if index < len(visible) and visible[index] else str(index)


def _driver_gpu() -> MemoryPlace | None:
    """Ask nvidia-smi for the first GPU that this process may use; None without it or where it does not know.

    A Jetson's does not know.
    """
    program = shutil.which("nvidia-smi")
    if program is None or os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}:
        return None
    name = _driver_index(0)
    try:
        asked = run_bounded([program, f"--id={name}", *_QUERY], _ASK_S)
        return MemoryPlace(name=f"GPU {name}", free_mb=float(asked.stdout.splitlines()[0]) * _MIB)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def _free_ram_mb() -> float:
    """Return the machine's available memory, or what the process's container has left if that is less."""
    meminfo = Path("/proc/meminfo").read_text()
    free_bytes = next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable")) * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        caches = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        free_bytes = min(free_bytes, limit - used + int(caches.get("inactive_file", 0)))
    except (OSError, ValueError):
        pass  # no container, or none with a limit
    return free_bytes / 1e6
