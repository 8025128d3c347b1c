"""Rank models for a machine and a beat, and say why one is not for it."""

from collections.abc import Iterable

from norm_core.models.manifest import HEADROOM, EngineKind, Manifest, Task
from norm_core.models.planning.installation import Installation, jetson_container, plan_installation
from norm_core.models.planning.machine import Machine
from norm_core.models.planning.speed import estimate_speed
from norm_core.records.record import record

_SPARE_DISK_MB = 200.0


@record
class ModelChoice:
    """A model on a machine. It can run there if `obstacle` is empty.

    `windows_per_s` is an upper bound by published figures, and None where none are known; `too_slow` is true only where
    even that bound is below the beat.
    """

    model: str
    engine: str
    quantization: str
    task: str
    device: str
    peak_mb: float | None
    free_mb: float | None
    is_estimate: bool
    windows_per_s: float | None
    speed_source: str
    too_slow: bool
    obstacle: str
    download_mb: float
    installation: Installation
    parameters_million: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether nothing is known that keeps the model from running here in time."""
        return not self.obstacle and not self.too_slow


def choose(machine: Machine, manifests: Iterable[Manifest], beat_s: float | None = None) -> list[ModelChoice]:
    """Return the models that answer questions about windows, best first; models on a server come after local ones."""
    asked = (m for m in manifests if m.task in (Task.VISION_LANGUAGE, Task.LANGUAGE) and m.engine != EngineKind.ENCODER)
    return sorted((plan(machine, manifest, beat_s) for manifest in asked), key=_rank)


def plan(machine: Machine, manifest: Manifest, beat_s: float | None = None, *, pulled: bool = False) -> ModelChoice:
    """Return one model's prospects on the machine; `pulled` means that its weights are here."""
    installation = plan_installation(manifest, machine)
    served = manifest.engine is EngineKind.OPENAI
    free_mb = machine.gpu_free_mb if installation.on_gpu else machine.ram_free_mb
    speed = estimate_speed(manifest, machine.gpu.name if machine.gpu and installation.on_gpu else "")
    windows_per_s = None if served else speed.windows_per_s
    download_mb = 0.0 if pulled or served else weights_mb(manifest)
    obstacle = (
        ""
        if served
        else (
            installation.obstacle
            or _memory_obstacle(manifest, free_mb, "GPU" if installation.on_gpu else "memory")
            or _disk_obstacle(download_mb + installation.disk_mb, machine)
        )
    )
    return ModelChoice(
        model=manifest.name,
        engine=manifest.engine.value,
        quantization=manifest.quantization,
        task=manifest.task.value,
        device="server" if served else "GPU" if installation.on_gpu else "CPU",
        peak_mb=manifest.memory.peak_mb if manifest.memory else None,
        free_mb=None if served else free_mb,
        is_estimate=manifest.memory is None or manifest.memory.estimated,
        windows_per_s=windows_per_s,
        speed_source="as its server is" if served else speed.source,
        too_slow=windows_per_s is not None and beat_s is not None and windows_per_s * beat_s < 1,
        obstacle=obstacle,
        download_mb=download_mb,
        installation=installation,
        parameters_million=manifest.parameters_million or 0.0,
    )


def weights_mb(manifest: Manifest) -> float:
    """Return the size of the files to pull: stated, or by parameters and the form in which they are published."""
    if manifest.size_bytes:
        return manifest.size_bytes / 1e6
    if manifest.source.hub and manifest.quantization in ("bf16", "f16", "nf4", "int8"):  # the last two are made at load
        return (manifest.parameters_million or 0.0) * 2
    return manifest.memory.load_mb if manifest.memory and manifest.source.hub else 0.0


def serving_commands(machine: Machine, manifest: Manifest) -> list[str]:
    """Return the commands that start the server of a manifest, where this project knows them."""
    url, model = manifest.source.url or "", str(manifest.settings.get("model", ""))
    port = url.rpartition(":")[2].partition("/")[0]
    match manifest.name.rpartition("-")[2]:
        case "vllm" if container := jetson_container(machine):
            return [f"docker run --runtime nvidia --network host {container} {_vllm(manifest, model, port)}"]
        case "vllm":
            return [f".venv-serve/bin/{_vllm(manifest, model, port)}"]
        case "server":
            return [f"llama-server -hf {model} --port {port} -c {manifest.context_tokens or 8192}"]
        case "ollama":
            return [f"ollama pull {model}", "ollama serve"]
        case "llm":
            return [f"trtllm-serve {model} --port {port}"]
    return []


def _memory_obstacle(manifest: Manifest, free_mb: float | None, place: str) -> str:
    if manifest.memory is None:
        return ""  # to be measured
    if free_mb is None:
        return f"the {place} memory of this machine is not known"
    if manifest.memory.peak_mb > free_mb * HEADROOM:
        need = f"{'about ' if manifest.memory.estimated else ''}{manifest.memory.peak_mb:.0f} MB"
        return f"needs {need} at its peak, and {free_mb * HEADROOM:.0f} MB of {place} can be had"
    return ""


def _disk_obstacle(needed_mb: float, machine: Machine) -> str:
    free_mb = machine.disk_free_mb
    if free_mb is None or needed_mb + _SPARE_DISK_MB <= free_mb:
        return ""
    return f"needs {needed_mb:.0f} MB of disk, and {free_mb:.0f} MB are free: set TACTFUL_WEIGHTS to a larger disk"


def _rank(choice: ModelChoice) -> tuple[object, ...]:
    """Runs, here, on a GPU, sees; then more parameters and bits, and fewer on a CPU, whose speed nobody knows."""
    sign = -1 if choice.device == "GPU" else 1
    return (
        not choice.runs,
        ["GPU", "CPU", "server"].index(choice.device),
        choice.task != Task.VISION_LANGUAGE.value,
        sign * choice.parameters_million,
        sign * (choice.peak_mb or 0.0),
        choice.model,
    )


def _vllm(manifest: Manifest, model: str, port: str) -> str:
    """Return the server's command; on its own, vLLM listens to the whole network."""
    return f"vllm serve {model} --host 127.0.0.1 --port {port} --max-model-len {manifest.context_tokens or 8192}"
