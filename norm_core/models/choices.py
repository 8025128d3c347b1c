"""The models that fit into the free memory of this computer, and the obstacles of the others."""

import shlex
import shutil
from collections.abc import Iterable

from norm_core.models.estimate import FILE_BITS, MEMORY_SHARE, doubles_on_cpu, estimate_memory
from norm_core.models.machine import Machine
from norm_core.models.manifest import EXTRAS, EngineKind, Manifest, Task
from norm_core.models.store import SPARE_DISK_MB, Store
from norm_core.records.record import record
from norm_core.runtime.extras import find_serve_program
from norm_core.runtime.server_address import is_on_this_machine

# The context of a server if the manifest states none.
_CONTEXT_TOKENS = 8192
# Quantizations of weights that are published in 16 bits.
_QUANTIZED_AT_LOAD = ("nf4", "int8")
# The commands that start servers. By default, vLLM would listen to the whole network.
_COMMANDS = {
    "vllm": "{vllm} serve {model} --host 127.0.0.1 --port {port} --max-model-len {context}",
    "llama-server": "llama-server {file} --host 127.0.0.1 --port {port} -c {context} -ngl 99",
    "ollama": "ollama serve",
}
# The pages that explain how to install a server.
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


def rank_models(machine: Machine, manifests: Iterable[Manifest]) -> list[ModelChoice]:
    """Return the models that answer questions about windows, best first."""
    tasks = (Task.VISION_LANGUAGE, Task.LANGUAGE)
    return sorted(
        (plan_model(machine, manifest) for manifest in manifests if manifest.task in tasks), key=_make_sort_key
    )


def plan_model(machine: Machine, manifest: Manifest, *, is_pulled: bool = False) -> ModelChoice:
    """Return how one model runs on the machine, or the obstacle; `is_pulled` means that its weights are here."""
    is_served = manifest.engine is EngineKind.OPENAI
    server = _find_local_server(manifest)
    on_gpu = machine.gpu is not None and manifest.engine is not EngineKind.ENCODER
    memory = manifest.memory
    download_mb = estimate_download_mb(manifest)
    obstacle = ""
    commands: tuple[str, ...] = ()
    if is_served:
        memory = None
        if server:
            quantization = "q4_k_m" if server in ("llama-server", "ollama") else "bf16"
            memory = estimate_memory(manifest, quantization, manifest.size_bytes or 0)
            commands = _make_start_commands(manifest, server)
            obstacle = _find_server_obstacle(machine, server)
    else:
        obstacle = _find_gpu_obstacle(machine, manifest)
        if memory and not on_gpu and doubles_on_cpu(manifest):
            memory = memory.model_copy(update={"load_mb": 2 * memory.load_mb, "peak_mb": 2 * memory.peak_mb})
    free_mb = machine.gpu_free_mb if on_gpu else machine.ram_free_mb
    memory_name = "GPU" if on_gpu else "memory"
    if memory and not obstacle:
        if free_mb is None:
            obstacle = f"the {memory_name} memory of this machine is not known"
        elif memory.peak_mb > free_mb * MEMORY_SHARE:
            need = f"{'about ' if memory.estimated else ''}{memory.peak_mb:.0f} MB"
            obstacle = f"needs {need} at its peak, and {free_mb * MEMORY_SHARE:.0f} MB of {memory_name} are usable"
    if not is_pulled and not obstacle:
        obstacle = _find_disk_obstacle(machine, download_mb)
    return ModelChoice(
        model=manifest.name,
        task=manifest.task,
        engine=manifest.engine,
        quantization=manifest.quantization,
        device="server" if is_served else "GPU" if on_gpu else "CPU",
        extra="serve" if server == "vllm" else EXTRAS.get(manifest.engine, ""),
        peak_mb=memory.peak_mb if memory else None,
        is_estimate=memory is None or memory.estimated,
        free_mb=None if is_served and not server else free_mb,
        download_mb=0.0 if is_pulled else download_mb,
        obstacle=obstacle,
        parameters_million=manifest.parameters_million or 0.0,
        commands=commands,
    )


def estimate_download_mb(manifest: Manifest) -> float:
    """Return the size of the files to pull: stated, or by parameters and the quantization of the published files."""
    if manifest.size_bytes:
        return manifest.size_bytes / 1e6
    if not manifest.source.hub:
        return 0.0
    quantization = "bf16" if manifest.quantization in _QUANTIZED_AT_LOAD else manifest.quantization
    bits = FILE_BITS.get(quantization, 0.0)
    precise_million = manifest.precise_million or 0.0 if bits < 16 else 0.0
    return float(round(((manifest.parameters_million or 0.0) - precise_million) * bits / 8 + precise_million * 2))


def _find_local_server(manifest: Manifest) -> str:
    """Return the program that serves the model on this machine; empty for a server elsewhere or of another kind."""
    if manifest.engine is not EngineKind.OPENAI or not is_on_this_machine(manifest.source.url or ""):
        return ""
    if manifest.files:  # A GGUF file, with which the server is started.
        return "llama-server"
    return next((server for server in _COMMANDS if manifest.name.endswith(f"-{server}")), "")


def _make_start_commands(manifest: Manifest, server: str) -> tuple[str, ...]:
    """Return the commands that start the server, in a terminal of its own."""
    model = shlex.quote(str(manifest.settings.get("model", "")))
    file_options = f"-hf {model}"
    if manifest.files:
        store = Store()
        folder = (store.find(manifest) or (store.folder_of(manifest),))[0]
        file_options = f"-m {shlex.quote(str(folder / manifest.files[0].path))} --alias {model}"
    command = _COMMANDS[server].format(
        vllm=shlex.quote(str(find_serve_program())),
        model=model,
        file=file_options,
        port=(manifest.source.url or "").rpartition(":")[2].partition("/")[0],
        context=manifest.context_tokens or _CONTEXT_TOKENS,
    )
    return (command, f"ollama pull {model}") if server == "ollama" else (command,)


def _find_server_obstacle(machine: Machine, server: str) -> str:
    if server == "vllm":
        return "" if machine.gpu else "vLLM needs an NVIDIA GPU, and there is none: serve it on another machine"
    program = _COMMANDS[server].split()[0]
    return "" if shutil.which(program) else f"{program} is not installed: see {_PAGES[program]}"


def _find_gpu_obstacle(machine: Machine, manifest: Manifest) -> str:
    """Return why a transformers model needs a GPU; without one, only unquantized models run, if torch is installed."""
    if manifest.engine is not EngineKind.TRANSFORMERS:
        return ""
    if manifest.quantization in ("awq", "gptq"):
        return f"weights quantized by {manifest.quantization} can be read only by a server: serve them with vLLM"
    if machine.gpu or ("transformers" in machine.extras and manifest.quantization in ("bf16", "f16", "f32", "gguf")):
        return ""
    fault = next(iter(machine.faults), "")
    return f"it needs an NVIDIA GPU{f': {fault}' if fault else ', and there is none'}"


def _find_disk_obstacle(machine: Machine, download_mb: float) -> str:
    if not download_mb or machine.disk_free_mb is None or download_mb + SPARE_DISK_MB <= machine.disk_free_mb:
        return ""
    return (
        f"needs {download_mb:.0f} MB of disk and {SPARE_DISK_MB:.0f} MB in reserve, and {machine.disk_free_mb:.0f} MB "
        "are free: free some, or set TACTFUL_WEIGHTS to a folder on a larger disk"
    )


def _make_sort_key(choice: ModelChoice) -> tuple[object, ...]:
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
