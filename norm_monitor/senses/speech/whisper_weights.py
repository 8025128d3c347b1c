"""Find the folder of a Whisper model by its name or its path."""

from pathlib import Path

from norm_core.engines.errors import EngineFailedError
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Task
from norm_core.models.store import Store
from norm_core.runtime.config import ConfigError

DEFAULT_MODEL = "whisper-tiny-en"


def model_folder(model: str) -> Path:
    """Return a model's folder; raise ConfigError for a named model that is unknown, damaged or not installed."""
    catalogue, name = Catalogue(), model or DEFAULT_MODEL
    if "/" in name or (name not in catalogue.names() and Path(name).is_dir()):
        return Path(name)
    manifest = catalogue.manifest(name)
    if manifest.task is not Task.SPEECH_TO_TEXT:
        raise ConfigError(f"{name}: is a model for {manifest.task}; name one for {Task.SPEECH_TO_TEXT}")
    try:
        folder = Store().open(manifest, catalogue.path(name).parent).folder
    except EngineFailedError as error:
        raise ConfigError(str(error)) from error
    if folder is None:
        raise ConfigError(f"{name}: runs on a server; name a Whisper model on this machine")
    return folder
