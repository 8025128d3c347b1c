"""What a server of a model needs on this machine, and the commands that start it."""

import math
import shlex

from norm_core.engines.openai.address import is_on_this_machine
from norm_core.models.estimate import estimate_memory
from norm_core.models.manifest import Manifest, MemoryNeed
from norm_core.models.planning.installation import OLDEST_OF_CUDA_13, OLDEST_WITH_BF16, Installation
from norm_core.models.planning.machine import Machine
from norm_core.records.record import record
from norm_core.runtime.extras import install_command, serve_program

_SERVE_MB = 4036.0  # serve.lock, wheels for x86-64, by their listing of 2026-11-23
_VLLM_WORK_MB = 2000.0  # activations and CUDA graphs; an assumption, not measured
# NVIDIA's containers for a Jetson, by the pages of its Jetson AI Lab (read on 2026-11-23); none was run here.
_CONTAINERS = {"vllm": "ghcr.io/nvidia-ai-iot/vllm", "llama-server": "ghcr.io/nvidia-ai-iot/llama_cpp"}
_CONTEXT_TOKENS = 8192


@record
class ServerPlan:
    """How a model is served here; each of `commands` has a title. `memory` is what the server takes, where known."""

    installation: Installation
    commands: tuple[tuple[str, str], ...]
    memory: MemoryNeed | None
    download_mb: float


def plan_server(manifest: Manifest, machine: Machine) -> ServerPlan | None:
    """Return the plan of a server on this machine; None for one elsewhere, or one that this project does not know."""
    kind = next((kind for kind in _PLANS if manifest.name.endswith(f"-{kind}")), "")
    if not kind or not is_on_this_machine(manifest.source.url or ""):
        return None
    quantization = "q4_k_m" if kind in ("llama-server", "ollama") else "bf16"
    memory = estimate_memory(manifest, quantization)
    download_mb = memory.load_mb if memory else 0.0
    if memory and kind == "vllm":
        memory = memory.model_copy(update={"peak_mb": memory.peak_mb + _VLLM_WORK_MB})
    installation, commands = _PLANS[kind](manifest, machine, memory)
    return ServerPlan(installation=installation, commands=tuple(commands), memory=memory, download_mb=download_mb)


_Plan = tuple[Installation, list[tuple[str, str]]]


def _vllm(manifest: Manifest, machine: Machine, memory: MemoryNeed | None) -> _Plan:
    """Plan vLLM in an environment of its own, or in a Jetson's container, which brings it."""
    capability = machine.gpu.compute_capability if machine.gpu else None
    # On its own, vLLM listens to the whole network, and takes nine tenths of the GPU.
    options = f"--host 127.0.0.1 --port {_port(manifest)} --max-model-len {manifest.context_tokens or _CONTEXT_TOKENS}"
    if memory and machine.gpu_total_mb:
        share = min(math.ceil(memory.peak_mb / machine.gpu_total_mb * 100) / 100, 1.0)
        options += f" --gpu-memory-utilization {share:.2f}"
    if capability and capability < OLDEST_WITH_BF16:
        options += " --dtype half"  # it refuses bf16 there
    served = f"serve {_model(manifest)} {options}"
    if machine.jetson:
        return _in_container("vllm", f"vllm {served}", machine)
    is_here = "serve" in machine.extras
    installation = Installation(
        extra="serve",
        is_here=is_here,
        command="" if is_here else install_command("serve"),
        download_mb=0.0 if is_here else _SERVE_MB,
        obstacle=_lack_for_vllm(machine),
        on_gpu=machine.gpu is not None,
    )
    bound = "".join(f"{name}={value} " for name, value in machine.gpu_environment.items())
    return installation, [_start(f"{bound}{shlex.quote(str(serve_program()))} {served}")]


def _lack_for_vllm(machine: Machine) -> str:
    elsewhere = "serve it on another machine"
    if machine.gpu is None:
        return f"vLLM needs an NVIDIA GPU, and there is none: {elsewhere}"
    if machine.architecture != "x86_64":
        return f"the lock of vLLM is for x86-64, and this is {machine.architecture}: {elsewhere}"
    if machine.cuda != 13:
        driver = machine.gpu.driver or "unknown"
        return f"vLLM's wheels need a driver from 580 on, and this one is {driver}: update it, or {elsewhere}"
    capability = machine.gpu.compute_capability
    if capability and capability < OLDEST_OF_CUDA_13:
        return f"vLLM's wheels need compute capability 7.5, and this GPU has {capability}: {elsewhere}"
    return ""


def _llama_server(manifest: Manifest, machine: Machine, memory: MemoryNeed | None) -> _Plan:
    command = (
        f"llama-server -hf {_model(manifest)} --host 127.0.0.1 --port {_port(manifest)} "
        f"-c {manifest.context_tokens or _CONTEXT_TOKENS} -ngl 99"
    )
    if machine.jetson and "llama-server" not in machine.tools:
        return _in_container("llama-server", command, machine)
    return _own_program("llama-server", "https://github.com/ggml-org/llama.cpp", machine), [_start(command)]


def _ollama(manifest: Manifest, machine: Machine, memory: MemoryNeed | None) -> _Plan:
    commands = [_start("ollama serve"), ("download the model into the server", f"ollama pull {_model(manifest)}")]
    return _own_program("ollama", "https://ollama.com/download", machine), commands


def _tensorrt_llm(manifest: Manifest, machine: Machine, memory: MemoryNeed | None) -> _Plan:
    command = f"trtllm-serve {_model(manifest)} --host 127.0.0.1 --port {_port(manifest)}"
    return _own_program("trtllm-serve", "https://nvidia.github.io/TensorRT-LLM", machine), [_start(command)]


_PLANS = {"vllm": _vllm, "llama-server": _llama_server, "ollama": _ollama, "tensorrt-llm": _tensorrt_llm}


def _own_program(name: str, page: str, machine: Machine) -> Installation:
    obstacle = "" if name in machine.tools else f"{name} is not installed: see {page}"
    return Installation(obstacle=obstacle, on_gpu=machine.gpu is not None)


def _in_container(kind: str, command: str, machine: Machine) -> _Plan:
    """Run a command in a Jetson's container, with the hub's cache and token of the host."""
    jetpack, model = (machine.jetson.jetpack, machine.jetson.model) if machine.jetson else ("", "")
    board = "orin" if jetpack.startswith("6") else "thor" if jetpack.startswith("7") and "Thor" in model else ""
    if not board:
        obstacle = "no container is known for this Jetson Linux: see https://www.jetson-ai-lab.com"
    elif "docker" not in machine.tools:
        obstacle = "docker is missing: apt install docker.io nvidia-container-toolkit"
    else:
        obstacle = ""
    started = (
        "docker run --rm --runtime nvidia --network host --ipc host -e HF_TOKEN -e HF_HOME=/cache -e LLAMA_CACHE=/cache"
        f' -v "${{HF_HOME:-$HOME/.cache/huggingface}}":/cache {_CONTAINERS[kind]}:latest-jetson-{board} {command}'
    )
    return Installation(obstacle=obstacle, on_gpu=True), [_start(started)] if board else []


def _start(command: str) -> tuple[str, str]:
    return "start the server, in a terminal of its own", command


def _model(manifest: Manifest) -> str:
    return shlex.quote(str(manifest.settings.get("model", "")))


def _port(manifest: Manifest) -> str:
    return (manifest.source.url or "").rpartition(":")[2].partition("/")[0]
