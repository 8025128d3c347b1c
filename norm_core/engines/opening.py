"""From a manifest to an engine: the weights checked, the backend imported only now, its temperature as fitted."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from norm_core.engines.backend import Backend
from norm_core.engines.calibration import DEFAULT_ROBOT, read_calibration
from norm_core.engines.engine import Engine
from norm_core.engines.fault import EngineFailedError, InvalidRequestError
from norm_core.error import TactfulError
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.store import Store, Weights
from norm_core.time import Clock

CALIBRATIONS = Path(__file__).resolve().parents[2] / "calibration"

# The module of each kind of engine; it has a function `opened`, which is an Opener.
BACKENDS = {
    EngineKind.TRANSFORMERS: "norm_core.engines.transformers_backend",
    EngineKind.LLAMA_CPP: "norm_core.engines.llama_cpp_backend",
    EngineKind.GENAI: "norm_core.engines.genai_backend",
    EngineKind.OPENAI: "norm_core.engines.openai_backend",
    EngineKind.ENCODER: "norm_core.engines.encoder",
}


class Opener(Protocol):
    """Loads the model of a manifest; may raise anything, and then must hold no memory.

    weights.folder is where the manifest's files lie, already verified, and weights.sha256 goes into the card; for a
    server the folder is None and the address is manifest.source.url. An unknown key in manifest.settings is a
    ConfigError.
    """

    def __call__(self, manifest: Manifest, weights: Weights) -> Backend[Any]: ...


def open_engine(
    manifest: Manifest,
    clock: Clock,
    *,
    store: Store | None = None,
    beside: Path | None = None,
    robot: str = DEFAULT_ROBOT,
    calibrations: Path = CALIBRATIONS,
    verify: bool = True,
) -> Engine:
    """The engine that asks the model. beside is the manifest's folder; verify=False trusts weights checked before."""
    opener = _opener(manifest)
    weights = (store or Store()).open(manifest, beside, verify=verify)
    calibration = read_calibration(calibrations, manifest.name, robot, weights.sha256)
    try:
        backend = opener(manifest, weights)
    except TactfulError:
        raise
    except MemoryError as error:
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{_needs(manifest)}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name} cannot be loaded: {type(error).__name__}: {error}") from error
    return Engine(backend, clock, temperature=calibration.temperature if calibration else 1.0)


def _opener(manifest: Manifest) -> Opener:
    module = BACKENDS.get(manifest.engine)
    if module is None:
        kinds = ", ".join(BACKENDS)
        raise InvalidRequestError(f"{manifest.name} runs on {manifest.engine} and answers no questions; {kinds} do")
    if find_spec(module) is None:
        raise EngineFailedError(f"this version of Tactful has no {manifest.engine} engine")
    try:
        opener: Opener = import_module(module).opened
    except ImportError as error:
        missing = error.name or str(error)
        raise EngineFailedError(f"the {manifest.engine} engine needs {missing}, which is not installed") from error
    return opener


def _needs(manifest: Manifest) -> str:
    if manifest.memory is None:
        return ""
    return f": it needs about {manifest.memory.peak_mb:.0f} MB{' (estimated)' if manifest.memory.estimated else ''}"
