"""Files of fitted values, which state what they were fitted on and for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import site_folder
from norm_core.files.plain_file import read_plain_file
from norm_core.runtime.config import Config, ConfigError

# The largest artefact.
MAX_BYTES = 64 << 20
A = TypeVar("A", bound="Artefact")


class Artefact(Config):
    """The head of every artefact; a subclass adds what was fitted."""

    kind: str
    format: int
    made_on: str  # the date
    made_with: dict[str, str]  # digests and names of what it depends on: a model, a prompt, an encoder
    fitted_on: dict[str, str]  # the labelled material, in words and by digest


def resolve_artefact_path(name: str) -> Path:
    """Return the path that a setting names: a file, or by its bare name a site's own in the user's data folder."""
    path = Path(name)
    is_bare = path.name == name and not path.suffix
    return site_folder("calibration") / f"{name}.json" if is_bare else path.expanduser()


def load_artefact(
    model: type[A], path: Path, *, kind: str, format_: int, made_with: Mapping[str, str], remedy: str
) -> A:
    """Read an artefact. Raises ConfigError if it is damaged, of another kind, or made for something else."""
    try:
        artefact = model.model_validate_json(read_plain_file(path, MAX_BYTES))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path, or {remedy}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: is not a {kind} artefact; {remedy}") from error
    if (artefact.kind, artefact.format) != (kind, format_):
        raise ConfigError(f"{path}: is not a {kind} artefact of format {format_}; {remedy}")
    differing = sorted(name for name, value in made_with.items() if artefact.made_with.get(name) != value)
    if differing:
        raise ConfigError(f"{path}: differs from what runs here in {', '.join(differing)}; {remedy}")
    return artefact


def write_artefact(artefact: Artefact, path: Path) -> None:
    """Write an artefact whole, or not at all. Raises ConfigError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, artefact.model_dump_json(indent=1, exclude_defaults=True) + "\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}; name another file") from error
