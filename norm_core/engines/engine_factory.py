"""Open an engine from a manifest: verify the weights, import the backend and apply the fitted temperature."""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from pydantic import Field, ValidationError

from norm_core.engines.engine import Engine
from norm_core.engines.engine_registry import OPENERS, check_answers
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.memory_guard import guard_load
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EXTRAS, Manifest
from norm_core.models.store import Store
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.data_files import shipped_file, site_folder
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import install_command
from norm_core.runtime.time import Clock

DEFAULT_ROBOT = "any"
SHIPPED_CALIBRATIONS = shipped_file("norm_core.engines", "calibrations")


class FittedTemperature(Config):
    """The temperature that makes a model's probabilities hold, and what it was fitted on.

    weights_sha256 names which weights it is for, as another model's temperature would only seem to calibrate.
    """

    robot: str = DEFAULT_ROBOT
    model: str
    weights_sha256: str = ""
    temperature: float = Field(gt=0, le=1000, allow_inf_nan=False)
    fitted_on: str = Field(min_length=1)


def open_engine(
    manifest: Manifest,
    clock: Clock,
    *,
    store: Store | None = None,
    beside: Path | None = None,
    robot: str = DEFAULT_ROBOT,
    calibrations: Sequence[Path] | None = None,
    verify: bool = True,
) -> Engine:
    """Return the engine for a manifest; raise a TactfulError if its weights are missing or damaged.

    `beside` is the manifest's folder. `verify=False` skips the hash check, for weights checked before. Without
    `calibrations`, a site's own calibrations have priority over the shipped ones.
    """
    check_answers(manifest)
    weights = (store or Store()).open(manifest, beside, verify=verify)
    if calibrations is None:
        calibrations = (site_folder("calibration"), SHIPPED_CALIBRATIONS)
    calibration = _read_calibration(calibrations, manifest.name, robot, weights.sha256)
    try:
        with guard_load(manifest) as claim:
            backend = OPENERS[manifest.engine](manifest, weights)
    except TactfulError:
        raise
    except ImportError as error:
        missing = error.name or str(error)
        remedy = f"; install it with {install_command(EXTRAS[manifest.engine])}" if manifest.engine in EXTRAS else ""
        raise EngineFailedError(
            f"the {manifest.engine} engine needs {missing}, which is not installed{remedy}"
        ) from error
    except MemoryError as error:
        raise EngineFailedError(f"out of memory while {manifest.name} was loaded{_needs(manifest)}") from error
    except Exception as error:
        raise EngineFailedError(f"{manifest.name}: cannot be loaded: {type(error).__name__}: {error}") from error
    temperature = calibration.temperature if calibration else 1.0
    return Engine(backend, clock, temperature=temperature, on_close=claim.release if claim else None)


def open_engine_by_name(name: str, clock: Clock) -> Engine:
    """Return the engine for the catalogue's manifest of that name."""
    catalogue = Catalogue()
    return open_engine(catalogue.manifest(name), clock, beside=catalogue.path(name).parent)


def _needs(manifest: Manifest) -> str:
    if manifest.memory is None:
        return ""
    return f": it needs about {manifest.memory.peak_mb:.0f} MB{' (estimated)' if manifest.memory.estimated else ''}"


def _read_calibration(folders: Iterable[Path], model: str, robot: str, weights_sha256: str) -> FittedTemperature | None:
    """Return the model's calibration for this robot, or else for any robot; earlier folders have priority."""
    for name, folder in product(dict.fromkeys((robot, DEFAULT_ROBOT)), folders):
        path = folder / f"{name}.{model}.json"
        if path.is_file():
            return _fitting(path, model, name, weights_sha256)
    return None


def _fitting(path: Path, model: str, robot: str, weights_sha256: str) -> FittedTemperature:
    try:
        calibration = FittedTemperature.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = error.errors()[0] if isinstance(error, ValidationError) else None
        reason = f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" if fault else str(error)
        raise ConfigError(f"{path}: {reason}") from error
    if (calibration.robot, calibration.model) != (robot, model):
        raise ConfigError(f"{path}: is for {calibration.robot} and {calibration.model}, as its name does not say")
    if calibration.weights_sha256 and weights_sha256 and calibration.weights_sha256 != weights_sha256:
        raise ConfigError(f"{path}: was fitted on other weights of {model}; fit it again or remove it")
    return calibration
