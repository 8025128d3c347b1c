"""A description of a computer, as far as models are concerned."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, load_yaml

# The oldest drivers of CUDA 12 and 13, from the release notes of the CUDA Toolkit.
_MIN_DRIVER = {13: 580, 12: 525}
# By the major version of Jetson Linux (L4T).
_JETPACKS = {35: "5", 36: "6", 38: "7.0", 39: "7.2"}


@record
class Gpu:
    """An NVIDIA GPU, or one slice of it; in a Jetson it has no memory of its own, and both sizes are None.

    `device` is what CUDA_VISIBLE_DEVICES calls it: its number, or the UUID of a slice.
    """

    name: str
    memory_mb: float | None = None
    free_mb: float | None = None
    driver: str = ""
    compute_capability: float | None = None
    device: str = ""

    @property
    def cuda(self) -> int | None:
        """The newest major version of CUDA that the driver runs; None if it is too old or unknown."""
        major = self.driver.partition(".")[0]
        return next((cuda for cuda, least in _MIN_DRIVER.items() if major.isdigit() and int(major) >= least), None)


@record
class Jetson:
    """A Jetson module; `l4t` is the release of Jetson Linux, such as 36.4.3."""

    model: str
    l4t: str = ""

    @property
    def jetpack(self) -> str:
        """The version of JetPack; empty if this project does not know the release."""
        major = self.l4t.partition(".")[0]
        return _JETPACKS.get(int(major), "") if major.isdigit() else ""


@record
class Machine:
    """A computer: sizes in MB of 10^6 bytes; `faults` tell what could not be found out or does not work."""

    architecture: str
    python: str = ""
    gpus: tuple[Gpu, ...] = ()
    jetson: Jetson | None = None
    ram_mb: float | None = None
    ram_free_mb: float | None = None
    disk_free_mb: float | None = None  # for weights
    extras: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    source: str = ""

    @property
    def gpu(self) -> Gpu | None:
        """The GPU with the most free memory: an engine loads a model into one alone."""
        return max(self.gpus, key=lambda gpu: gpu.free_mb or gpu.memory_mb or 0.0, default=None)

    @property
    def gpu_free_mb(self) -> float | None:
        """The memory that a model can have on the GPU; a Jetson's GPU shares that of the CPU."""
        if self.gpu is None:
            return None
        own_mb = self.gpu.free_mb if self.gpu.free_mb is not None else self.gpu.memory_mb
        return self.ram_free_mb if own_mb is None and self.jetson else own_mb

    @property
    def gpu_total_mb(self) -> float | None:
        """The memory of the GPU, of which servers take a share; in a Jetson that of the whole machine."""
        own_mb = self.gpu.memory_mb if self.gpu else None
        return self.ram_mb if own_mb is None and self.jetson else own_mb

    @property
    def gpu_environment(self) -> dict[str, str]:
        """The variables that bind a process to the GPU of the plan; none where there is no other."""
        if self.gpu is None or not self.gpu.device or (len(self.gpus) == 1 and self.gpu.device == "0"):
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self.gpu.device}

    @property
    def cuda(self) -> int | None:
        """The newest major version of CUDA that runs here; JetPack 6 brings CUDA 12, JetPack 7 CUDA 13."""
        if self.jetson:
            return {"6": 12, "7": 13}.get(self.jetson.jetpack[:1])
        return self.gpu.cuda if self.gpu else None


def read_machine(path: Path) -> Machine:
    """Return the machine that a YAML or JSON file describes; raise ConfigError if it is invalid."""
    plain = load_yaml(path)
    try:
        return TypeAdapter(Machine).validate_python(plain)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "the whole"
        raise ConfigError(
            f"{path}: {place}: {fault['msg']}; see `tactful models choose --json` for the form"
        ) from error
