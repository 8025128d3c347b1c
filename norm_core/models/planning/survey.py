"""Find out what this computer has, through its commands and the files under `root`."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from norm_core.models.planning.machine import Gpu, Jetson, Machine
from norm_core.models.planning.nvidia_smi import Complain, list_gpus
from norm_core.runtime.extras import installed_extras

_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the PCI class of display controllers
_RELEASE = re.compile(r"R(\d+) \(release\), REVISION: ([\d.]+)")
_TOOLS = ("cmake", "g++", "nvcc", "docker", "llama-server", "ollama", "trtllm-serve")


def survey(root: Path = Path("/"), disk: Path | None = None) -> Machine:
    """Describe this computer; `disk` is a folder on the disk that weights go to."""
    faults: list[str] = []
    jetson = _jetson(root)
    gpus = tuple(_gpus(root, jetson, faults.append))
    memory = dict(re.findall(r"^(\w+): +(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE))
    total, free = (int(memory[key]) * 1.024e-3 if key in memory else None for key in ("MemTotal", "MemAvailable"))
    weights = _existing(disk or Path.home())
    return Machine(
        architecture=platform.machine(),
        python=".".join(platform.python_version_tuple()[:2]),
        gpus=gpus,
        jetson=jetson,
        ram_mb=total,
        ram_free_mb=free,
        disk_free_mb=_free_mb(weights),
        home_free_mb=_free_elsewhere_mb(Path(sys.prefix), weights),
        hub_free_mb=_free_elsewhere_mb(hub_cache(), weights),
        extras=installed_extras(for_gpu=bool(gpus)),
        tools=tuple(tool for tool in _TOOLS if _tool(tool, root)),
        faults=tuple(faults),
        source="this machine",
    )


def _gpus(root: Path, jetson: Jetson | None, complain: Complain) -> list[Gpu]:
    tool = shutil.which("nvidia-smi")
    if tool is None and not jetson and _has_card(root):
        complain("an NVIDIA GPU is in this machine and nvidia-smi is not: install NVIDIA's driver")
    gpus = list_gpus(tool, jetson, complain) if tool else []
    return gpus or ([Gpu(name=jetson.model)] if jetson else [])


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


def hub_cache() -> Path:
    """Return the folder that the hub's own library, and so a server, downloads to."""
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface").expanduser()


def _free_elsewhere_mb(folder: Path, other: Path) -> float | None:
    """Return what is free for a folder; None if it is on the disk of the other one."""
    existing = _existing(folder)
    return None if existing.stat().st_dev == other.stat().st_dev else _free_mb(existing)


def _existing(folder: Path) -> Path:
    while not folder.is_dir():
        folder = folder.parent
    return folder


def _free_mb(folder: Path) -> float:
    return shutil.disk_usage(folder).free / 1e6


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
