"""The manifests by name: the shipped ones and those of a team."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from norm_core.files.atomic_file import atomic_file
from norm_core.files.data_files import shipped_file, site_folder
from norm_core.models.estimate import estimate_memory
from norm_core.models.manifest import Manifest
from norm_core.runtime.config import ConfigError, check_config, load_yaml
from norm_core.runtime.program import PROGRAM

_SHIPPED = shipped_file("norm_core.models", "shipped")
_VARIANTS = "variants"


class Catalogue:
    """Read the folders' `NAME.yaml` on demand; of two manifests with one name, the later folder has priority.

    A manifest's `variants` map a suffix to the fields that differ: `nf4` in NAME.yaml is the model NAME-nf4.
    """

    def __init__(self, folders: tuple[Path, ...] | None = None) -> None:
        self._folders = folders or (_SHIPPED, *_own_folders())

    @property
    def own(self) -> Path:
        """The folder for a new manifest: the last folder, which may not exist yet."""
        return self._folders[-1]

    def names(self) -> list[str]:
        """Return all names; a manifest is read only for its variants."""
        files = [path for folder in self._folders for path in folder.glob("*.yaml")]
        return sorted({name for path in files for name in (path.stem, *_variants(path))})

    def path(self, name: str) -> Path:
        """Return the file that describes a model or its variant; raise ConfigError if the name is unknown."""
        for folder in reversed(self._folders):
            if (path := folder / f"{name}.yaml").is_file():
                return path
            for path in folder.glob("*.yaml"):
                if name.startswith(f"{path.stem}-") and name in _variants(path):
                    return path
        raise ConfigError(self.unknown(name))

    def unknown(self, name: str) -> str:
        """Return a message that names the models with similar names."""
        close = difflib.get_close_matches(name, self.names())
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        return (
            f"there is no model {name!r}; {hint}{PROGRAM} models list shows all, {PROGRAM} models setup MODEL sets one "
            f"up, {PROGRAM} models add takes one of your own"
        )

    def manifest(self, name: str) -> Manifest:
        """Read a manifest and make the path of its weights absolute; raise ConfigError if it is unknown or invalid."""
        path = self.path(name)
        plain = load_yaml(path)
        if isinstance(plain, dict):
            plain = dict(plain)
            variants = plain.pop(_VARIANTS, None) or {}
            if name != path.stem:
                variant = variants[name.removeprefix(f"{path.stem}-")]
                if not isinstance(variant, dict):
                    raise ConfigError(f"{path}: variants: {name}: give the fields that differ from {path.stem}")
                plain.pop("memory", None)
                plain |= {"name": name} | variant
        manifest = check_config(Manifest, plain, str(path))
        if manifest.name != name:
            raise ConfigError(f"{path}: name: is {manifest.name!r}, and the file's name says {name!r}; make them equal")
        changes: dict[str, Any] = {}
        if manifest.source.path is not None:
            weights = (path.parent / manifest.source.path).absolute()
            changes["source"] = manifest.source.model_copy(update={"path": str(weights)})
        if manifest.memory is None and (memory := estimate_memory(manifest, manifest.quantization)):
            changes["memory"] = memory
        return manifest.model_copy(update=changes)

    def check_free(self, name: str) -> None:
        """Raise ConfigError if a model of that name exists."""
        if name in self.names():
            raise ConfigError(f"--name: there is a model {name} already; give another name")

    def write(self, plain: Mapping[str, Any]) -> Path:
        """Write a manifest to the team's folder, and return its path; raise ConfigError if it is invalid."""
        manifest = check_config(Manifest, plain, "the new manifest")  # before writing: a bad one breaks the listing
        path = self.own / f"{manifest.name}.yaml"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as stream:
                stream.write(yaml.safe_dump(dict(plain), sort_keys=False, allow_unicode=True).encode())
        except OSError as error:
            remedy = "set TACTFUL_MODELS to a folder that you can write to"
            raise ConfigError(f"{path}: cannot be written: {error.strerror}; {remedy}") from error
        return path


def _variants(path: Path) -> list[str]:
    """Return the names of a manifest's variants; none for an invalid file, which raises once it is read."""
    try:
        if f"\n{_VARIANTS}:" not in path.read_text(encoding="utf-8"):
            return []
        return [f"{path.stem}-{suffix}" for suffix in load_yaml(path)[_VARIANTS] or ()]
    except (OSError, ConfigError, UnicodeDecodeError, TypeError, KeyError):
        return []


def _own_folders() -> tuple[Path, ...]:
    """Return the user's folder of manifests, then those in TACTFUL_MODELS, as in PATH."""
    folders = os.environ.get("TACTFUL_MODELS", "").split(os.pathsep)
    return (site_folder("manifests"), *(Path(folder) for folder in folders if folder))
