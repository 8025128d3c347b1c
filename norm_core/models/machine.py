"""What this computer has for models: its GPUs, the memory and disk that are free, and the extras."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.extras import installed_extras

SMI_TIMEOUT_S = 10.0
_MIB = 2**20 / 1e6
_QUERY = ("--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
_VISIBLE = "CUDA_VISIBLE_DEVICES"

Complain = Callable[[str], None]


@record
class Gpu:
    """An NVIDIA GPU, or one slice of it; sizes in MB of 10^6 bytes, both None where it shares the CPU's memory.

    `device` is its number as CUDA_VISIBLE_DEVICES calls it.
    """

    name: str
    device: str
    memory_mb: float | None = None
    free_mb: float | None = None


@record
class Machine:
    """Sizes in MB of 10^6 bytes; `faults` tell what could not be found out or does not work."""

    gpus: tuple[Gpu, ...] = ()
    ram_free_mb: float | None = None
    disk_free_mb: float | None = None  # for weights
    extras: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def gpu(self) -> Gpu | None:
        """The GPU with the most free memory: an engine loads a model into one alone."""
        return max(self.gpus, key=lambda gpu: gpu.free_mb or 0.0, default=None)

    @property
    def gpu_free_mb(self) -> float | None:
        """The memory that a model can have on the GPU."""
        if self.gpu is None:
            return None
        return self.ram_free_mb if self.gpu.memory_mb is None else self.gpu.free_mb

    @property
    def gpu_environment(self) -> dict[str, str]:
        """The variables that bind a process to that GPU; none where there is no other."""
        if self.gpu is None or (len(self.gpus) == 1 and self.gpu.device == "0"):
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", _VISIBLE: self.gpu.device}


def survey(disk: Path | None = None, meminfo: Path = Path("/proc/meminfo")) -> Machine:
    """Describe this computer; `disk` is a folder on the disk that weights go to."""
    faults: list[str] = []
    gpus = tuple(_visible_gpus(faults.append))
    memory = re.search(r"^MemAvailable: +(\d+) kB", meminfo.read_text(encoding="utf-8"), re.MULTILINE)
    weights = (disk or Path.home()).absolute()
    folder = next(path for path in (weights, *weights.parents) if path.is_dir())
    return Machine(
        gpus=gpus,
        ram_free_mb=int(memory[1]) * 1.024e-3 if memory else None,
        disk_free_mb=shutil.disk_usage(folder).free / 1e6,
        extras=installed_extras(for_gpu=bool(gpus)),
        faults=tuple(faults),
    )


def _visible_gpus(complain: Complain) -> list[Gpu]:
    """Return the GPUs that nvidia-smi lists and that this process may use, as CUDA_VISIBLE_DEVICES limits them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    gpus = [pair for line in _lines_of(tool, complain) for pair in _gpus_of(line, complain)]
    visible = os.environ.get(_VISIBLE)
    if visible is None or not gpus:
        return [gpu for gpu, _ in gpus]
    names = [name.strip() for name in visible.split(",") if name.strip()]
    visible_gpus = [
        gpu
        for gpu, uuid in gpus
        if any(name == gpu.device or (not name.isdigit() and uuid.startswith(name)) for name in names)
    ]
    if not visible_gpus:
        complain(f"{_VISIBLE}={visible} hides every GPU of this machine; unset it, or name one by its number")
    return visible_gpus


def _gpus_of(line: str, complain: Complain) -> Iterator[tuple[Gpu, str]]:
    """Yield the GPU of a line with its UUID; nothing for a line that is not understood."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 5 or not parts[0].isdigit() or not parts[2]:
        complain(
            f"nvidia-smi printed a line that is not understood, {line[:80]!r}: reload or reinstall NVIDIA's driver"
        )
        return
    device, uuid, name, total, free = parts
    yield Gpu(name=name, device=device, memory_mb=_megabytes(total), free_mb=_megabytes(free)), uuid


def _lines_of(tool: str, complain: Complain) -> list[str]:
    """Return the lines that nvidia-smi prints about each GPU."""
    try:
        answer = run_bounded([tool, *_QUERY], SMI_TIMEOUT_S)
    except OSError as error:
        complain(f"nvidia-smi cannot be run: {error.strerror}; reinstall NVIDIA's driver")
        return []
    except subprocess.TimeoutExpired:
        complain(f"nvidia-smi gave no answer in {SMI_TIMEOUT_S:g} s: the driver hangs; reload it, or restart")
        return []
    if answer.returncode:
        first_line = next(iter((answer.stderr or answer.stdout).strip().splitlines()), "it said nothing")
        complain(f"nvidia-smi failed: {first_line}; reload or reinstall NVIDIA's driver")
        return []
    return [line for line in answer.stdout.splitlines() if line.strip()]


def _megabytes(mebibytes: str) -> float | None:
    return int(mebibytes) * _MIB if mebibytes.isdigit() else None
