"""Read the GPUs that nvidia-smi lists; what it says that is not understood becomes a fault."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence

from norm_core.models.planning.machine import Gpu, Jetson
from norm_core.records.record import record
from norm_core.runtime.bounded_command import run_bounded

TIMEOUT_S = 10.0
_MIB = 2**20 / 1e6
_FIELDS = ("index", "uuid", "name", "memory.total", "memory.free", "driver_version", "mig.mode.current", "compute_cap")
_UNKNOWN_FIELD = "is not a valid field"  # as drivers before 510 say of compute_cap
_SLICE = re.compile(r"^\s+(MIG [\w.+]*?(\d+)gb\S*).*\(UUID: ([^)]+)\)", re.MULTILINE)
_VISIBLE = "CUDA_VISIBLE_DEVICES"

Complain = Callable[[str], None]


def list_gpus(tool: str, jetson: Jetson | None, complain: Complain) -> list[Gpu]:
    """Return the GPUs and slices that this process may use, as CUDA_VISIBLE_DEVICES limits them."""
    said = ask_driver([tool, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"])
    if _UNKNOWN_FIELD in said.fault:
        said = ask_driver([tool, f"--query-gpu={','.join(_FIELDS[:-1])}", "--format=csv,noheader,nounits"])
    if said.fault:
        complain(said.fault)
    gpus = [found for line in said.lines for found in _gpus_of(line, tool, jetson, complain)]
    visible = os.environ.get(_VISIBLE)
    if visible is None or not gpus:
        return [gpu for gpu, _ in gpus]
    names = [name.strip() for name in visible.split(",") if name.strip()]
    kept = [
        gpu
        for gpu, uuid in gpus
        if any(name == gpu.device or (not name.isdigit() and uuid.startswith(name)) for name in names)
    ]
    if not kept:
        complain(f"{_VISIBLE}={visible} hides every GPU of this machine; unset it, or name one by its number")
    return kept


def _gpus_of(line: str, tool: str, jetson: Jetson | None, complain: Complain) -> Iterator[tuple[Gpu, str]]:
    """Yield the GPU of a line with its UUID, or its slices with theirs."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) not in (len(_FIELDS), len(_FIELDS) - 1) or not parts[0].isdigit() or not parts[2]:
        complain(
            f"nvidia-smi printed a line that is not understood, {line[:80]!r}: reload or reinstall NVIDIA's driver"
        )
        return
    device, uuid, name, total, free, driver, sliced, capability = (*parts, "")[: len(_FIELDS)]
    gpu = Gpu(
        name=jetson.model if jetson else name,
        memory_mb=_megabytes(total),
        free_mb=_megabytes(free),
        driver=driver if re.fullmatch(r"\d+(\.\d+)*", driver) and not (jetson and not total.isdigit()) else "",
        compute_capability=float(capability) if re.fullmatch(r"\d+\.\d+", capability) else None,
        device=device,
    )
    if sliced == "Enabled":
        slices = list(_slices_of(gpu, tool, complain))
        if not slices:
            complain(f"{name}: MIG is enabled and no slice was made; make one with nvidia-smi mig")
        yield from ((each, each.device) for each in slices)
        return
    if gpu.memory_mb is None and not jetson:
        complain(f"{name}: nvidia-smi says {total or 'nothing'} of its memory; look at nvidia-smi -q, or restart")
    yield gpu, uuid


def _slices_of(gpu: Gpu, tool: str, complain: Complain) -> Iterator[Gpu]:
    """Yield a GPU's slices by the size in their names; what is free of them nvidia-smi does not list so."""
    said = ask_driver([tool, "-L", "-i", gpu.device])
    if said.fault:
        complain(said.fault)
    for name, size, uuid in _SLICE.findall("\n".join(said.lines)):
        capability = gpu.compute_capability
        yield Gpu(name=name, memory_mb=int(size) * 1e3, driver=gpu.driver, compute_capability=capability, device=uuid)


@record
class DriverAnswer:
    """The lines that nvidia-smi printed, or the fault that kept it from it."""

    lines: tuple[str, ...] = ()
    fault: str = ""


def ask_driver(command: Sequence[str]) -> DriverAnswer:
    """Run nvidia-smi, in bounded time."""
    try:
        asked = run_bounded(command, TIMEOUT_S)
    except OSError as error:
        return DriverAnswer(fault=f"nvidia-smi cannot be run: {error.strerror}; reinstall NVIDIA's driver")
    except subprocess.TimeoutExpired:
        fault = f"nvidia-smi gave no answer in {TIMEOUT_S:g} s: the driver hangs; reload it, or restart"
        return DriverAnswer(fault=fault)
    if asked.returncode:
        said = next(iter((asked.stderr or asked.stdout).strip().splitlines()), "it said nothing")
        return DriverAnswer(fault=f"nvidia-smi failed: {said}; reload or reinstall NVIDIA's driver")
    return DriverAnswer(lines=tuple(line for line in asked.stdout.splitlines() if line.strip()))


def _megabytes(mebibytes: str) -> float | None:
    return int(mebibytes) * _MIB if mebibytes.isdigit() else None
