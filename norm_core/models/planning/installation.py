"""What an engine needs on a machine: its extra, the lock, tools, and how much comes over the network."""

from norm_core.models.manifest import EXTRAS, EngineKind, Manifest
from norm_core.models.planning.machine import Machine
from norm_core.records.record import record
from norm_core.runtime.extras import install_command
from norm_core.runtime.program import PROGRAM

# Wheels for x86-64 and Python 3.11 that come on top of the default environment, by their listing of 2026-11-23.
_TORCH_MB = {13: 3065.0, 12: 4193.0}  # transformers-cuda13.lock and transformers-cuda12.lock
_MIN_PYTHON = (3, 11)
# CUDA 13 dropped the GPUs before Turing, by its release notes. Tensor cores compute in bf16 from Ampere on.
MIN_CAPABILITY_OF_CUDA_13, MIN_CAPABILITY_WITH_BF16 = 7.5, 8.0
_MIN_CAPABILITY_OF_KERNELS = {"fp8": 8.9}


@record
class Installation:
    """The extra that an engine needs; `obstacle` tells why it cannot be installed or used, with the remedy.

    `caution` tells what is worse than it could be, though it runs.
    """

    extra: str = ""
    is_here: bool = True
    command: str = ""
    download_mb: float = 0.0
    obstacle: str = ""
    on_gpu: bool = False
    caution: str = ""


def plan_installation(manifest: Manifest, machine: Machine) -> Installation:
    """Return what the manifest's engine needs in this environment."""
    extra = EXTRAS.get(manifest.engine, "")
    obstacle = _lack_of_python(machine)
    match manifest.engine:
        case EngineKind.TRANSFORMERS:
            return _transformers(manifest, machine, obstacle)
    is_here = not extra or extra in machine.extras
    on_gpu = machine.gpu is not None and manifest.engine is not EngineKind.ENCODER
    command = "" if is_here else install_command(extra)
    return Installation(extra=extra, is_here=is_here, command=command, obstacle=obstacle, on_gpu=on_gpu and is_here)


def _lack_of_python(machine: Machine) -> str:
    """Return why Tactful's own environment cannot be set up there; a server beside its container can."""
    parts = machine.python.split(".")[:2]
    if len(parts) < 2 or tuple(map(int, parts)) >= _MIN_PYTHON:
        return ""
    remedy = "install Python 3.11 or newer"
    if machine.jetson:
        remedy = (
            "run Tactful in its container (docs/how-to/deploy.md). It has no nvcc: serve the model beside it, as "
            f"{PROGRAM} models setup qwen3-vl-2b-llama-server --dry-run shows"
        )
    system = f"JetPack {machine.jetson.jetpack} has" if machine.jetson else "this machine has"
    return f"{system} Python {machine.python}, and Tactful needs 3.11: {remedy}"


def _transformers(manifest: Manifest, machine: Machine, obstacle: str) -> Installation:
    """Plan the extra from its lock for CUDA 13 or 12; a Jetson has torch in its container alone."""
    is_here = "transformers" in machine.extras
    if not is_here:
        obstacle = obstacle or _lack_of_torch(machine)
    obstacle = obstacle or _lack_of_gpu(manifest, machine) or _lack_of_kernels(manifest, machine)
    return Installation(
        extra="transformers",
        is_here=is_here,
        command="" if is_here else install_command("transformers"),
        download_mb=0.0 if is_here else _TORCH_MB.get(machine.cuda or 0, 0.0),
        obstacle=obstacle,
        on_gpu=machine.gpu is not None,
        caution=_slowness(manifest, machine),
    )


def _lack_of_torch(machine: Machine) -> str:
    if machine.jetson:
        return (
            "no wheel of torch for a Jetson's GPU is in the registry: serve it, as "
            f"{PROGRAM} models setup qwen3-vl-4b-vllm --dry-run shows"
        )
    if machine.gpu and machine.cuda is None:
        driver = machine.gpu.driver or "an unknown driver"
        return f"the driver {driver} is too old: CUDA 12 needs 525, CUDA 13 needs 580; update the driver"
    if machine.architecture != "x86_64":
        return f"the locks are for x86-64, and this is {machine.architecture}: install torch by its maker's page"
    return ""


def _lack_of_gpu(manifest: Manifest, machine: Machine) -> str:
    """Return why a transformers model cannot do without a GPU; whoever installed torch here may run a whole one."""
    if machine.gpu:
        capability = machine.gpu.compute_capability
        if capability and capability < MIN_CAPABILITY_OF_CUDA_13 and machine.cuda == 13 and not machine.jetson:
            return (
                f"the GPU has compute capability {capability}, and CUDA 13 needs 7.5: serve a GGUF model (llama-server)"
            )
        return ""
    if "transformers" in machine.extras and manifest.quantization in ("bf16", "f16", "f32"):
        return ""
    fault = next(iter(machine.faults), "")
    return f"it needs an NVIDIA GPU{f': {fault}' if fault else ', and there is none'}"


def _lack_of_kernels(manifest: Manifest, machine: Machine) -> str:
    quantization = manifest.quantization
    oldest = _MIN_CAPABILITY_OF_KERNELS.get(quantization, 0.0)
    capability = machine.gpu.compute_capability if machine.gpu else None
    if capability and capability < oldest:
        return f"the GPU has compute capability {capability}, and kernels for {quantization} need {oldest}: take nf4"
    if quantization in ("awq", "gptq"):
        return f"weights quantized by {quantization} are read by a server alone: serve them with vLLM"
    return ""


def _slowness(manifest: Manifest, machine: Machine) -> str:
    if manifest.quantization == "compressed-tensors":
        return "its 4-bit weights become 16-bit ones at the first question; only the download is small"
    capability = machine.gpu.compute_capability if machine.gpu else None
    if capability and capability < MIN_CAPABILITY_WITH_BF16:
        return f"slow: the GPU has compute capability {capability}, and computes in bf16 only from 8.0 on"
    return ""
