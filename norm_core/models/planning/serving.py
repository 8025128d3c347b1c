"""What a server of a model needs on this machine, and the commands that start it."""

import math
import shlex

from norm_core.engines.openai.address import is_on_this_machine
from norm_core.models.estimate import estimate_memory
from norm_core.models.manifest import Manifest, MemoryNeed
from norm_core.models.planning.installation import MIN_CAPABILITY_OF_CUDA_13, MIN_CAPABILITY_WITH_BF16, Installation
from norm_core.models.planning.machine import Jetson, Machine
from norm_core.records.record import record
from norm_core.runtime.extras import install_command, serve_program

_SERVE_MB = 4036.0  # serve.lock, wheels for x86-64, by their listing of 2026-11-23
_VLLM_WORK_MB = 2000.0  # activations and CUDA graphs; an assumption, not measured
_CONTEXT_TOKENS = 8192
# On its own, vLLM listens to the whole network.
_COMMANDS = {
    "vllm": "vllm serve {model} --host 127.0.0.1 --port {port} --max-model-len {context}",
    "llama-server": "llama-server -hf {model} --host 127.0.0.1 --port {port} -c {context} -ngl 99",
    "ollama": "ollama serve",
    "tensorrt-llm": "trtllm-serve {model} --host 127.0.0.1 --port {port}",
}
# NVIDIA's containers for a Jetson, by the pages of its Jetson AI Lab (read on 2026-11-23); none was run here.
_CONTAINERS = {"vllm": "ghcr.io/nvidia-ai-iot/vllm", "llama-server": "ghcr.io/nvidia-ai-iot/llama_cpp"}
_PAGES = {
    "llama-server": "https://github.com/ggml-org/llama.cpp",
    "ollama": "https://ollama.com/download",
    "trtllm-serve": "https://nvidia.github.io/TensorRT-LLM",
}


@record
class ServerPlan:
    """How a model is served here; each of `commands` has a title. `memory` is what the server takes, where known."""

    installation: Installation
    commands: tuple[tuple[str, str], ...]
    memory: MemoryNeed | None
    download_mb: float


def plan_server(manifest: Manifest, machine: Machine) -> ServerPlan | None:
    """Return the plan of a server on this machine; None for one elsewhere, or one that this project does not know."""
    kind = next((kind for kind in _COMMANDS if manifest.name.endswith(f"-{kind}")), "")
    if not kind or not is_on_this_machine(manifest.source.url or ""):
        return None
    memory = estimate_memory(manifest, "q4_k_m" if kind in ("llama-server", "ollama") else "bf16")
    download_mb = memory.load_mb if memory else 0.0
    model = shlex.quote(str(manifest.settings.get("model", "")))
    port = (manifest.source.url or "").rpartition(":")[2].partition("/")[0]
    command = _COMMANDS[kind].format(model=model, port=port, context=manifest.context_tokens or _CONTEXT_TOKENS)
    if kind == "vllm":
        if memory:
            memory = memory.model_copy(update={"peak_mb": memory.peak_mb + _VLLM_WORK_MB})
        command += _vllm_options(machine, memory)
    program = command.split()[0]
    if machine.jetson and kind in _CONTAINERS and program not in machine.tools:
        obstacle, command = _in_container(machine.jetson, kind, command, machine.tools)
        installation = Installation(obstacle=obstacle, on_gpu=True)
    elif kind == "vllm":
        installation = _vllm_installation(machine)
        bound = "".join(f"{name}={value} " for name, value in machine.gpu_environment.items())
        command = f"{bound}{shlex.quote(str(serve_program()))}{command.removeprefix('vllm')}"
    else:
        obstacle = "" if program in machine.tools else f"{program} is not installed: see {_PAGES[program]}"
        installation = Installation(obstacle=obstacle, on_gpu=machine.gpu is not None)
    commands = [("start the server, in a terminal of its own", command)] if command else []
    if kind == "ollama":
        commands.append(("download the model into the server", f"ollama pull {model}"))
    return ServerPlan(installation=installation, commands=tuple(commands), memory=memory, download_mb=download_mb)


def _vllm_options(machine: Machine, memory: MemoryNeed | None) -> str:
    """Return the share of the GPU, of which vLLM takes nine tenths on its own, and a format that it computes in."""
    options = ""
    if memory and machine.gpu_total_mb:
        share = min(math.ceil(memory.peak_mb / machine.gpu_total_mb * 100) / 100, 1.0)
        options += f" --gpu-memory-utilization {share:.2f}"
    capability = machine.gpu.compute_capability if machine.gpu else None
    if capability and capability < MIN_CAPABILITY_WITH_BF16:
        options += " --dtype half"  # it refuses bf16 there
    return options


def _vllm_installation(machine: Machine) -> Installation:
    """Plan vLLM in an environment of its own."""
    is_here = "serve" in machine.extras
    return Installation(
        extra="serve",
        is_here=is_here,
        command="" if is_here else install_command("serve"),
        download_mb=0.0 if is_here else _SERVE_MB,
        obstacle=_lack_for_vllm(machine),
        on_gpu=machine.gpu is not None,
    )


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
    if capability and capability < MIN_CAPABILITY_OF_CUDA_13:
        return f"vLLM's wheels need compute capability 7.5, and this GPU has {capability}: {elsewhere}"
    return ""


def _in_container(jetson: Jetson, kind: str, command: str, tools: tuple[str, ...]) -> tuple[str, str]:
    """Return the obstacle, and the command in a Jetson's container with the hub's cache and token of the host."""
    jetpack = jetson.jetpack
    board = "orin" if jetpack.startswith("6") else "thor" if jetpack.startswith("7") and "Thor" in jetson.model else ""
    if not board:
        return "no container is known for this Jetson Linux: see https://www.jetson-ai-lab.com", ""
    obstacle = "" if "docker" in tools else "docker is missing: apt install docker.io nvidia-container-toolkit"
    return obstacle, (
        "docker run --rm --runtime nvidia --network host --ipc host -e HF_TOKEN -e HF_HOME=/cache -e LLAMA_CACHE=/cache"
        f' -v "${{HF_HOME:-$HOME/.cache/huggingface}}":/cache {_CONTAINERS[kind]}:latest-jetson-{board} {command}'
    )
