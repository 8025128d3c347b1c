"""Survey this computer: its GPUs, free memory, free disk and installed extras."""

import os
import shutil
import subprocess
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.extras import find_installed_extras

SMI_TIMEOUT_S = 10.0
_MB_PER_MIB = 2**20 / 1e6
_SMI_OPTIONS = ("--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
_REMEDY = "; reload or reinstall NVIDIA's driver"


@record
class Gpu:
    """An NVIDIA GPU, or one slice of it; sizes in MB of 10^6 bytes, both None if it shares the memory of the CPU.

    `device` is its number as CUDA_VISIBLE_DEVICES calls it.
    """

    name: str
    device: str
    memory_mb: float | None = None
    free_mb: float | None = None


@record
class Machine:
    """Resources for models, in MB of 10^6 bytes; `faults` names what failed or is unknown."""

    gpus: tuple[Gpu, ...] = ()
    ram_free_mb: float = 0.0
    disk_free_mb: float | None = None  # for weights
    extras: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def gpu(self) -> Gpu | None:
        """The GPU with the most free memory, because an engine loads a model into one GPU."""
        return max(self.gpus, key=lambda gpu: gpu.free_mb or 0.0, default=None)

    @property
    def gpu_free_mb(self) -> float | None:
        """The free memory of the GPU; that of the machine if they share it."""
        if self.gpu is None:
            return None
        return self.ram_free_mb if self.gpu.memory_mb is None else self.gpu.free_mb

    @property
    def gpu_environment(self) -> dict[str, str]:
        """The variables that bind a process to that GPU; none if it is the only one."""
        if self.gpu is None or (len(self.gpus) == 1 and self.gpu.device == "0"):
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE_VARIABLE: self.gpu.device}


def survey_machine(disk: Path | None = None) -> Machine:
    """Describe this computer; `disk` is a folder on the disk for weights."""
    faults: list[str] = []
    gpus = _list_visible_gpus(faults)
    weights = (disk or Path.home()).absolute()
    folder = next(path for path in (weights, *weights.parents) if path.is_dir())
    return Machine(
        gpus=gpus,
        ram_free_mb=measure_free_ram_mb(),
        disk_free_mb=shutil.disk_usage(folder).free / 1e6,
        extras=find_installed_extras(for_gpu=bool(gpus)),
        faults=tuple(faults),
    )


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


def _list_visible_gpus(faults: list[str]) -> tuple[Gpu, ...]:
    """Return the GPUs that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide; add problems to `faults`."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        answer = run_bounded([tool, *_SMI_OPTIONS], SMI_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        fault = f"gave no answer in {SMI_TIMEOUT_S:g} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        faults.append(f"nvidia-smi: {fault}{_REMEDY}")
        return ()
    if answer.returncode:
        first_line = next(iter((answer.stderr or answer.stdout).strip().splitlines()), "it printed nothing")
        faults.append(f"nvidia-smi failed: {first_line}{_REMEDY}")
        return ()
    visible = os.environ.get(_VISIBLE_VARIABLE)
    visible_names = [name.strip() for name in (visible or "").split(",") if name.strip()]
    gpus = list[Gpu]()
    hidden_count = 0
    for line in filter(str.strip, answer.stdout.splitlines()):
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 5 or not parts[0].isdigit() or not parts[2]:
            faults.append(f"nvidia-smi printed an unknown line, {line[:80]!r}{_REMEDY}")
            continue
        device, uuid, name, total, free = parts
        if visible is None or any(
            visible_name == device or (not visible_name.isdigit() and uuid.startswith(visible_name))
            for visible_name in visible_names
        ):
            gpus.append(Gpu(name=name, device=device, memory_mb=_to_megabytes(total), free_mb=_to_megabytes(free)))
        else:
            hidden_count += 1
    if hidden_count and not gpus:
        faults.append(
            f"{_VISIBLE_VARIABLE}={visible} hides every GPU of this machine; unset it, or set it to the number of one"
        )
    return tuple(gpus)


def _to_megabytes(mebibytes: str) -> float | None:
    return int(mebibytes) * _MB_PER_MIB if mebibytes.isdigit() else None
