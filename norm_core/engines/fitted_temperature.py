"""The fitted temperature of a model on a robot: one JSON file for each (robot, model)."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from pydantic import Field, ValidationError

from norm_core.runtime.config import Config, ConfigError

DEFAULT_ROBOT = "any"


class FittedTemperature(Config):
    """The temperature that makes a model's probabilities hold, and what it was fitted on.

    weights_sha256 names which weights it is for, as another model's temperature would only seem to calibrate.
    """

    robot: str = DEFAULT_ROBOT
    model: str
    weights_sha256: str = ""
    temperature: float = Field(gt=0, le=1000, allow_inf_nan=False)
    fitted_on: str = Field(min_length=1)


def read_calibration(folders: Iterable[Path], model: str, robot: str, weights_sha256: str) -> FittedTemperature | None:
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
