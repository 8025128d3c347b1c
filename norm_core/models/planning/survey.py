"""Find out what this computer has, through its commands and the files under `root`."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from norm_core.models.planning.machine import Gpu, Jetson, Machine
from norm_core.runtime.bounded_command import run_bounded
from norm_core.runtime.extras import installed_extras

SMI_TIMEOUT_S = 10.0
_MIB = 2**20 / 1e6
_FIELDS = ("index", "uuid", "name", "memory.total", "memory.free", "driver_version", "compute_cap")
_UNKNOWN_FIELD = "is not a valid field"  # as drivers before 510 say of compute_cap
_VISIBLE = "CUDA_VISIBLE_DEVICES"

_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the PCI class of display controllers
_RELEASE = re.compile(r"R(\d+) \(release\), REVISION: ([\d.]+)")
_TOOLS = ("cmake", "g++", "nvcc", "docker", "llama-server", "ollama", "trtllm-serve")

Complain = Callable[[str], None]


def survey(root: Path = Path("/"), disk: Path | None = None) -> Machine:
    """Describe this computer; `disk` is a folder on the disk that weights go to."""
    faults: list[str] = []
    jetson = _jetson(root)
    gpus = tuple(_gpus(root, jetson, faults.append))
    memory = dict(re.findall(r"^(\w+): +(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE))
    total, free = (int(memory[key]) * 1.024e-3 if key in memory else None for key in ("MemTotal", "MemAvailable"))
    weights = (disk or Path.home()).absolute()
    folder = next(path for path in (weights, *weights.parents) if path.is_dir())
    return Machine(
        architecture=platform.machine(),
        python=".".join(platform.python_version_tuple()[:2]),
        gpus=gpus,
        jetson=jetson,
        ram_mb=total,
        ram_free_mb=free,
        disk_free_mb=shutil.disk_usage(folder).free / 1e6,
        extras=installed_extras(for_gpu=bool(gpus)),
        tools=tuple(
            tool for tool in _TOOLS if shutil.which(tool) or os.access(root / "usr/local/cuda/bin" / tool, os.X_OK)
        ),
        faults=tuple(faults),
        source="this machine",
    )


def _gpus(root: Path, jetson: Jetson | None, complain: Complain) -> list[Gpu]:
    tool = shutil.which("nvidia-smi")
    if tool is None and not jetson and _has_card(root):
        complain("an NVIDIA GPU is in this machine and nvidia-smi is not: install NVIDIA's driver")
    gpus = _visible_gpus(tool, jetson, complain) if tool else []
    return gpus or ([Gpu(name=jetson.model)] if jetson else [])


def _visible_gpus(tool: str, jetson: Jetson | None, complain: Complain) -> list[Gpu]:
    """Return the GPUs that nvidia-smi lists and that this process may use, as CUDA_VISIBLE_DEVICES limits them."""
    lines, fault = _query(tool, _FIELDS)
    if _UNKNOWN_FIELD in fault:
        lines, fault = _query(tool, _FIELDS[:-1])
    if fault:
        complain(fault)
    gpus = [pair for line in lines for pair in _gpus_of(line, jetson, complain)]
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


def _gpus_of(line: str, jetson: Jetson | None, complain: Complain) -> Iterator[tuple[Gpu, str]]:
    """Yield the GPU of a line with its UUID; nothing for a line that is not understood."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) not in (len(_FIELDS), len(_FIELDS) - 1) or not parts[0].isdigit() or not parts[2]:
        complain(
            f"nvidia-smi printed a line that is not understood, {line[:80]!r}: reload or reinstall NVIDIA's driver"
        )
        return
    device, uuid, name, total, free, driver, capability = (*parts, "")[: len(_FIELDS)]
    gpu = Gpu(
        name=jetson.model if jetson else name,
        memory_mb=_megabytes(total),
        free_mb=_megabytes(free),
        driver=driver if re.fullmatch(r"\d+(\.\d+)*", driver) and not (jetson and not total.isdigit()) else "",
        compute_capability=float(capability) if re.fullmatch(r"\d+\.\d+", capability) else None,
        device=device,
    )
    if gpu.memory_mb is None and not jetson:
        complain(f"{name}: nvidia-smi says {total or 'nothing'} of its memory; look at nvidia-smi -q, or restart")
    yield gpu, uuid


def _query(tool: str, fields: Sequence[str]) -> tuple[list[str], str]:
    """Return the lines that nvidia-smi prints about each GPU, and the fault that kept it from it, if any."""
    try:
        asked = run_bounded([tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], SMI_TIMEOUT_S)
    except OSError as error:
        return [], f"nvidia-smi cannot be run: {error.strerror}; reinstall NVIDIA's driver"
    except subprocess.TimeoutExpired:
        return [], f"nvidia-smi gave no answer in {SMI_TIMEOUT_S:g} s: the driver hangs; reload it, or restart"
    if asked.returncode:
        first_line = next(iter((asked.stderr or asked.stdout).strip().splitlines()), "it said nothing")
        return [], f"nvidia-smi failed: {first_line}; reload or reinstall NVIDIA's driver"
    return [line for line in asked.stdout.splitlines() if line.strip()], ""


def _megabytes(mebibytes: str) -> float | None:
    return int(mebibytes) * _MIB if mebibytes.isdigit() else None


def _has_card(root: Path) -> bool:
    cards = root.glob("sys/bus/pci/devices/*")
    return any(_text(c / "vendor").startswith(_NVIDIA) and _text(c / "class").startswith(_DISPLAY) for c in cards)


def _jetson(root: Path) -> Jetson | None:
    release = _RELEASE.search(_text(root / "etc/nv_tegra_release"))
    model = _text(root / "proc/device-tree/model").rstrip("\0\n")
    if release is None and "Jetson" not in model:
        return None
    return Jetson(model=model or "Jetson", l4t=".".join(release.groups()) if release else "")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
