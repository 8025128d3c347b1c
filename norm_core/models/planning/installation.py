"""What an engine needs on a machine: its extra, the lock, tools, and how much comes over the network."""

from norm_core.models.manifest import EXTRAS, EngineKind, Manifest
from norm_core.models.planning.machine import Machine
from norm_core.records.record import record
from norm_core.runtime.extras import install_command

# Wheels for x86-64 and Python 3.11 that come on top of the default environment, by their listing of 2026-11-23.
_TORCH_MB = {13: 3065.0, 12: 4193.0}  # transformers-cuda13.lock and transformers-cuda12.lock
_SERVE_MB = 4036.0
_LLAMA_MB = 77.0  # published as source, and compiled here
_UNPACKED = 2.5  # a wheel's files take about so many times its size
_VLLM = "vllm/vllm-openai:latest"
_VLLM_ON_JETPACK_6 = "ghcr.io/nvidia-ai-iot/vllm:latest-jetson-orin"


@record
class Installation:
    """The extra that an engine needs; `obstacle` tells why it cannot be installed or used, with the remedy."""

    extra: str = ""
    is_here: bool = True
    command: str = ""
    download_mb: float = 0.0
    obstacle: str = ""
    on_gpu: bool = False

    @property
    def disk_mb(self) -> float:
        """The room that the installation takes."""
        return self.download_mb * _UNPACKED


def plan_installation(manifest: Manifest, machine: Machine) -> Installation:
    """Return what the manifest's engine needs here; a server needs nothing in this environment."""
    extra = EXTRAS.get(manifest.engine, "")
    has_gpu = machine.gpu is not None
    if not extra or extra in machine.extras:
        on_gpu = has_gpu and manifest.engine is not EngineKind.ENCODER
        obstacle = _lack_of_gpu(manifest, machine) or _lack_of_kernels(manifest, machine)
        return Installation(extra=extra, on_gpu=on_gpu, obstacle=obstacle)
    match manifest.engine:
        case EngineKind.LLAMA_CPP:
            return _llama(machine)
        case EngineKind.TRANSFORMERS:
            return _transformers(manifest, machine)
    return Installation(extra=extra, is_here=False, command=install_command(extra))


def jetson_container(machine: Machine) -> str:
    """Return the container that has vLLM for this Jetson; empty where this project knows none."""
    jetpack = machine.jetson.jetpack if machine.jetson else ""
    return _VLLM_ON_JETPACK_6 if jetpack.startswith("6") else _VLLM if jetpack.startswith("7") else ""


def plan_server(machine: Machine) -> Installation:
    """Return what vLLM needs here: an environment of its own, or a Jetson's container, which brings it."""
    if machine.jetson or "serve" in machine.extras:
        return Installation(extra="serve")
    old = machine.cuda != 13
    return Installation(
        extra="serve",
        is_here=False,
        command=install_command("serve"),
        download_mb=_SERVE_MB,
        obstacle="vLLM's wheels need an NVIDIA GPU and a driver from 580 on; serve it on another machine"
        if old
        else "",
        on_gpu=machine.gpu is not None,
    )


def _llama(machine: Machine) -> Installation:
    obstacle = "" if "g++" in machine.tools else "a C++ compiler builds it, and g++ is missing: apt install g++"
    on_gpu = machine.gpu is not None and "nvcc" in machine.tools
    return Installation(
        extra="llama",
        is_here=False,
        command=install_command("llama"),
        download_mb=_LLAMA_MB,
        obstacle=obstacle,
        on_gpu=on_gpu,
    )


def _transformers(manifest: Manifest, machine: Machine) -> Installation:
    """Plan the extra from its lock for CUDA 13 or 12; a Jetson has torch in its container alone."""
    obstacle = _lack_of_gpu(manifest, machine) or _lack_of_kernels(manifest, machine)
    if machine.jetson:
        container = jetson_container(machine)
        obstacle = (
            f"no wheel of torch for a Jetson's GPU is in the registry: serve the model from the container {container}"
            if container
            else "no container is known for this Jetson Linux: update to JetPack 6 or 7"
        )
    elif machine.gpu and machine.cuda is None:
        driver = machine.gpu.driver or "an unknown driver"
        obstacle = f"the driver {driver} is too old: CUDA 12 needs 525, CUDA 13 needs 580; update the driver"
    elif machine.architecture != "x86_64":
        obstacle = f"the locks are for x86-64, and this is {machine.architecture}: install torch by its maker's page"
    return Installation(
        extra="transformers",
        is_here=False,
        command=install_command("transformers"),
        download_mb=_TORCH_MB.get(machine.cuda or 0, 0.0),
        obstacle=obstacle,
        on_gpu=machine.gpu is not None,
    )


def _lack_of_gpu(manifest: Manifest, machine: Machine) -> str:
    """Return why a transformers model cannot do without a GPU; whoever installed torch here may run a whole one."""
    if manifest.engine is not EngineKind.TRANSFORMERS or machine.gpu:
        return ""
    if "transformers" in machine.extras and manifest.quantization in ("bf16", "f16", "f32"):
        return ""
    fault = next(iter(machine.faults), "")
    return f"it needs an NVIDIA GPU{f': {fault}' if fault else ', and there is none'}"


def _lack_of_kernels(manifest: Manifest, machine: Machine) -> str:
    if manifest.quantization not in ("awq", "gptq") or "gptq" in machine.extras:
        return ""
    return f"its kernels are in the extra gptq: run {install_command('gptq')}"
