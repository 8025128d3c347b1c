"""Find out what this computer has, through its commands and the files under `root`."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from norm_core.models.planning.machine import Gpu, Jetson, Machine
from norm_core.runtime.extras import installed_extras

TIMEOUT_S = 10.0
_MIB = 2**20 / 1e6
_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the PCI class of display controllers
_QUERY = ("--query-gpu=name,memory.total,memory.free,driver_version,mig.mode.current", "--format=csv,noheader,nounits")
_SLICE = re.compile(r"^\s+(MIG [\w.+]*?(\d+)gb\S*)", re.MULTILINE)
_RELEASE = re.compile(r"R(\d+) \(release\), REVISION: ([\d.]+)")
_TOOLS = ("cmake", "g++", "nvcc", "docker")


def survey(root: Path = Path("/"), disk: Path | None = None) -> Machine:
    """Describe this computer; `disk` is a folder on the disk that weights go to."""
    faults: list[str] = []
    jetson = _jetson(root)
    gpus = tuple(_gpus(root, jetson, faults.append))
    memory = dict(re.findall(r"^(\w+): +(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE))
    total, free = (int(memory[key]) * 1.024e-3 if key in memory else None for key in ("MemTotal", "MemAvailable"))
    return Machine(
        architecture=platform.machine(),
        python=".".join(platform.python_version_tuple()[:2]),
        gpus=gpus,
        jetson=jetson,
        ram_mb=total,
        ram_free_mb=free,
        disk_free_mb=_disk_free_mb(disk or Path.home()),
        extras=installed_extras(for_gpu=bool(gpus)),
        tools=tuple(tool for tool in _TOOLS if _tool(tool, root)),
        faults=tuple(faults),
        source="this machine",
    )


def _gpus(root: Path, jetson: Jetson | None, complain: Callable[[str], None]) -> Iterable[Gpu]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        if jetson:
            yield Gpu(name=jetson.model)
        elif _has_card(root):
            complain("an NVIDIA GPU is in this machine and nvidia-smi is not: install NVIDIA's driver")
        return
    lines = _asked([tool, *_QUERY], complain)
    if not lines and jetson:
        yield Gpu(name=jetson.model)
    for line in lines:
        name, total, free, driver, sliced = (*(part.strip() for part in line.split(",")), "", "", "", "", "")[:5]
        if sliced == "Enabled":
            slices = _slices(tool, driver, complain)
            if not slices:
                complain(f"{name}: MIG is enabled and no slice was made; make one with nvidia-smi mig")
            yield from slices
        elif not total.isdigit():
            yield Gpu(name=jetson.model if jetson else name, driver="" if jetson else driver)
        else:
            yield Gpu(name=name, memory_mb=int(total) * _MIB, free_mb=_megabytes(free), driver=driver)


def _slices(tool: str, driver: str, complain: Callable[[str], None]) -> list[Gpu]:
    """Return a GPU's slices by the size in their names; what is free of them nvidia-smi does not list so."""
    listed = "\n".join(_asked([tool, "-L"], complain))
    return [Gpu(name=name, memory_mb=int(size) * 1e3, driver=driver) for name, size in _SLICE.findall(listed)]


def _asked(command: list[str], complain: Callable[[str], None]) -> list[str]:
    """Return a command's lines; where it hangs or fails, complain and return none."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        complain(f"nvidia-smi gave no answer in {TIMEOUT_S:.0f} s: the driver hangs; reload it, or restart")
        return []
    except OSError as error:
        complain(f"nvidia-smi cannot be run: {error.strerror}; reinstall NVIDIA's driver")
        return []
    if asked.returncode:
        said = next(iter((asked.stderr or asked.stdout).strip().splitlines()), "it said nothing")
        complain(f"nvidia-smi failed: {said}; reload or reinstall NVIDIA's driver")
        return []
    return [line for line in asked.stdout.splitlines() if line.strip()]


def _has_card(root: Path) -> bool:
    cards = root.glob("sys/bus/pci/devices/*")
    return any(_text(c / "vendor").startswith(_NVIDIA) and _text(c / "class").startswith(_DISPLAY) for c in cards)


def _jetson(root: Path) -> Jetson | None:
    release = _RELEASE.search(_text(root / "etc/nv_tegra_release"))
    model = _text(root / "proc/device-tree/model").rstrip("\0\n")
    if release is None and "Jetson" not in model:
        return None
    return Jetson(model=model or "Jetson", l4t=".".join(release.groups()) if release else "")


def _tool(name: str, root: Path) -> bool:
    return bool(shutil.which(name)) or os.access(root / "usr/local/cuda/bin" / name, os.X_OK)


def _disk_free_mb(folder: Path) -> float:
    while not folder.is_dir():
        folder = folder.parent
    return shutil.disk_usage(folder).free / 1e6


def _megabytes(mebibytes: str) -> float | None:
    return int(mebibytes) * _MIB if mebibytes.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
