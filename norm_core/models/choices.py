"""Which models fit into the free memory of this computer, and why the others do not."""

import shlex
import shutil
from collections.abc import Iterable

from norm_core.models.estimate import FILE_BITS, MEMORY_SHARE, doubles_on_a_cpu, estimate_memory
from norm_core.models.machine import Machine
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.store import SPARE_DISK_MB, Store
from norm_core.records.record import record
from norm_core.runtime.extras import find_serve_program
from norm_core.runtime.server_address import is_on_this_machine

_CONTEXT_TOKENS = 8192
_QUANTIZED_AT_LOAD = ("nf4", "int8")
# On its own, vLLM listens to the whole network.
_COMMANDS = {
    "vllm": "{vllm} serve {model} --host 127.0.0.1 --port {port} --max-model-len {context}",
    "llama-server": "llama-server {file} --host 127.0.0.1 --port {port} -c {context} -ngl 99",
    "ollama": "ollama serve",
}
_PAGES = {
    "llama-server": "https://github.com/ggml-org/llama.cpp",
    "ollama": "https://ollama.com/download",
}


@record
class ModelChoice:
    """A model on this machine; it can run here if `obstacle` is empty. `commands` start its server."""

    model: str
    task: Task
    engine: EngineKind
    quantization: str
    device: str
    extra: str = ""
    peak_mb: float | None
    is_estimate: bool
    free_mb: float | None = None
    download_mb: float = 0.0
    obstacle: str = ""
    parameters_million: float = 0.0
    commands: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether no obstacle is known."""
        return not self.obstacle


def choose(machine: Machine, manifests: Iterable[Manifest]) -> list[ModelChoice]:
    """Return the models that answer questions about windows, best first; models on a server come after local ones."""
    answering = (m for m in manifests if m.task in (Task.VISION_LANGUAGE, Task.LANGUAGE))
    return sorted((plan(machine, manifest) for manifest in answering), key=_rank)


def plan(machine: Machine, manifest: Manifest, *, pulled: bool = False) -> ModelChoice:
    """Return whether and how one model runs on the machine; `pulled` means that its weights are here."""
    is_served, kind = manifest.engine is EngineKind.OPENAI, _server_kind(manifest)
    on_gpu = machine.gpu is not None and manifest.engine is not EngineKind.ENCODER
    memory, download_mb, obstacle = manifest.memory, weights_mb(manifest), ""
    commands: tuple[str, ...] = ()
    if is_served:
        memory = None
        if kind:
            served_in = "q4_k_m" if kind in ("llama-server", "ollama") else "bf16"
            memory = estimate_memory(manifest, served_in, manifest.size_bytes or 0)
            commands, obstacle = _start_commands(manifest, kind), _server_obstacle(machine, kind)
    else:
        obstacle = _gpu_obstacle(machine, manifest)
        if memory and not on_gpu and doubles_on_a_cpu(manifest):
            memory = memory.model_copy(update={"load_mb": 2 * memory.load_mb, "peak_mb": 2 * memory.peak_mb})
    free_mb = machine.gpu_free_mb if on_gpu else machine.ram_free_mb
    memory_name = "GPU" if on_gpu else "memory"
    if memory and not obstacle:
        if free_mb is None:
            obstacle = f"the {memory_name} memory of this machine is not known"
        elif memory.peak_mb > free_mb * MEMORY_SHARE:
            need = f"{'about ' if memory.estimated else ''}{memory.peak_mb:.0f} MB"
            obstacle = f"needs {need} at its peak, and {free_mb * MEMORY_SHARE:.0f} MB of {memory_name} can be had"
    if not pulled and not obstacle:
        obstacle = _disk_obstacle(machine, download_mb)
    return ModelChoice(
        model=manifest.name,
        task=manifest.task,
        engine=manifest.engine,
        quantization=manifest.quantization,
        device="server" if is_served else "GPU" if on_gpu else "CPU",
        extra="serve" if kind == "vllm" else EXTRAS.get(manifest.engine, ""),
        peak_mb=memory.peak_mb if memory else None,
        is_estimate=memory is None or memory.estimated,
        free_mb=None if is_served and not kind else free_mb,
        download_mb=0.0 if pulled else download_mb,
        obstacle=obstacle,
        parameters_million=manifest.parameters_million or 0.0,
        commands=commands,
    )


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


def _server_kind(manifest: Manifest) -> str:
    """Return the program that serves the model on this machine; empty for a server elsewhere or of another kind."""
    if manifest.engine is not EngineKind.OPENAI or not is_on_this_machine(manifest.source.url or ""):
        return ""
    if manifest.files:  # a GGUF file that the server is started with
        return "llama-server"
    return next((kind for kind in _COMMANDS if manifest.name.endswith(f"-{kind}")), "")


def _start_commands(manifest: Manifest, kind: str) -> tuple[str, ...]:
    """Return the commands that start the server, in a terminal of its own."""
    model, file = shlex.quote(str(manifest.settings.get("model", ""))), ""
    if manifest.files:
        store = Store()
        folder = (store.found(manifest) or (store.folder(manifest),))[0]
        file = f"-m {shlex.quote(str(folder / manifest.files[0].path))} --alias {model}"
    command = _COMMANDS[kind].format(
        vllm=shlex.quote(str(find_serve_program())),
        model=model,
        file=file or f"-hf {model}",
        port=(manifest.source.url or "").rpartition(":")[2].partition("/")[0],
        context=manifest.context_tokens or _CONTEXT_TOKENS,
    )
    return (command, f"ollama pull {model}") if kind == "ollama" else (command,)


def _server_obstacle(machine: Machine, kind: str) -> str:
    if kind == "vllm":
        return "" if machine.gpu else "vLLM needs an NVIDIA GPU, and there is none: serve it on another machine"
    program = _COMMANDS[kind].split()[0]
    return "" if shutil.which(program) else f"{program} is not installed: see {_PAGES[program]}"


def _gpu_obstacle(machine: Machine, manifest: Manifest) -> str:
    """Return why a transformers model needs a GPU; without one, only unquantized models run, if torch is installed."""
    if manifest.engine is not EngineKind.TRANSFORMERS:
        return ""
    if manifest.quantization in ("awq", "gptq"):
        return f"weights quantized by {manifest.quantization} are read by a server alone: serve them with vLLM"
    if machine.gpu or ("transformers" in machine.extras and manifest.quantization in ("bf16", "f16", "f32", "gguf")):
        return ""
    fault = next(iter(machine.faults), "")
    return f"it needs an NVIDIA GPU{f': {fault}' if fault else ', and there is none'}"


def _disk_obstacle(machine: Machine, download_mb: float) -> str:
    if not download_mb or machine.disk_free_mb is None or download_mb + SPARE_DISK_MB <= machine.disk_free_mb:
        return ""
    return (
        f"needs {download_mb:.0f} MB of disk and {SPARE_DISK_MB:.0f} MB in reserve, and {machine.disk_free_mb:.0f} MB "
        "are free: free some, or set TACTFUL_WEIGHTS to a folder on a larger disk"
    )


def _rank(choice: ModelChoice) -> tuple[object, ...]:
    """Sort by: runs, on a GPU, takes pictures; then size, largest first on a GPU; then 16 bits, which are faster."""
    sign = -1 if choice.device == "GPU" else 1
    return (
        not choice.runs,
        ["GPU", "CPU", "server"].index(choice.device),
        choice.task is not Task.VISION_LANGUAGE,
        sign * choice.parameters_million,
        choice.quantization not in ("bf16", "f16"),
        sign * (choice.peak_mb or 0.0),
        choice.model,
    )
