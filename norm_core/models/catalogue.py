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

_SHIPPED_FOLDER = shipped_file("norm_core.models", "shipped")
# The key of the variants in a manifest.
_VARIANTS = "variants"


class Catalogue:
    """The manifests `NAME.yaml` of some folders, read on demand; for equal names, the later folder has priority.

    The `variants` of a manifest map a suffix to the fields that differ: `nf4` in NAME.yaml is the model NAME-nf4.
    """

    def __init__(self, folders: tuple[Path, ...] | None = None) -> None:
        self._folders = folders or (_SHIPPED_FOLDER, *_list_own_folders())

    @property
    def own_folder(self) -> Path:
        """The folder for new manifests: the last one, which may not exist yet."""
        return self._folders[-1]

    def list_names(self) -> list[str]:
        """Return all names; a manifest is read only for its variants."""
        files = [path for folder in self._folders for path in folder.glob("*.yaml")]
        return sorted({name for path in files for name in (path.stem, *_list_variants(path))})

    def find_path(self, name: str) -> Path:
        """Return the file of a model or its variant. Raises ConfigError if the name is unknown."""
        for folder in reversed(self._folders):
            if (path := folder / f"{name}.yaml").is_file():
                return path
            for path in folder.glob("*.yaml"):
                if name.startswith(f"{path.stem}-") and name in _list_variants(path):
                    return path
        raise ConfigError(self.describe_unknown(name))

    def describe_unknown(self, name: str) -> str:
        """Return a message that names the models with similar names."""
        similar_names = difflib.get_close_matches(name, self.list_names())
        hint = f"did you mean {' or '.join(similar_names)}? " if similar_names else ""
        return (
            f"there is no model {name!r}; {hint}{PROGRAM} models list shows all, {PROGRAM} models add URL "
            "adds one of a server"
        )

    def read_manifest(self, name: str) -> Manifest:
        """Read a manifest, with an absolute path of its weights. Raises ConfigError if it is unknown or invalid."""
        path = self.find_path(name)
        plain = load_yaml(path)
        if isinstance(plain, dict):
            plain = dict(plain)
            variants = plain.pop(_VARIANTS, None) or {}
            if name != path.stem:
                variant = variants[name.removeprefix(f"{path.stem}-")]
                if not isinstance(variant, dict):
                    raise ConfigError(f"{path}: variants: {name}: state the fields that differ from {path.stem}")
                plain.pop("memory", None)
                plain |= {"name": name} | variant
        manifest = check_config(Manifest, plain, str(path))
        if manifest.name != name:
            raise ConfigError(
                f"{path}: name: is {manifest.name!r}, and the name of the file is {name!r}; make them equal"
            )
        changes: dict[str, Any] = {}
        if manifest.source.path is not None:
            weights = (path.parent / manifest.source.path).absolute()
            changes["source"] = manifest.source.model_copy(update={"path": str(weights)})
        if manifest.memory is None and (memory := estimate_memory(manifest, manifest.quantization)):
            changes["memory"] = memory
        return manifest.model_copy(update=changes)

    def check_free(self, name: str) -> None:
        """Raise ConfigError if there is a model of that name."""
        if name in self.list_names():
            raise ConfigError(f"--name: there is a model {name} already; give another name")

    def write(self, plain: Mapping[str, Any]) -> Path:
        """Write a manifest to the folder of the team, and return its path.

        Raises ConfigError if it is invalid or cannot be written.
        """
        manifest = check_config(Manifest, plain, "the new manifest")
        path = self.own_folder / f"{manifest.name}.yaml"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as stream:
                stream.write(yaml.safe_dump(dict(plain), sort_keys=False, allow_unicode=True).encode())
        except OSError as error:
            remedy = "set TACTFUL_MODELS to a folder that you can write to"
            raise ConfigError(f"{path}: cannot be written: {error.strerror}; {remedy}") from error
        return path


def _list_variants(path: Path) -> list[str]:
    """Return the names of the variants in a manifest; none for an invalid file, which raises once it is read."""
    try:
        if f"\n{_VARIANTS}:" not in path.read_text(encoding="utf-8"):
            return []
        return [f"{path.stem}-{suffix}" for suffix in load_yaml(path)[_VARIANTS] or ()]
    except (OSError, ConfigError, UnicodeDecodeError, TypeError, KeyError):
        return []


def _list_own_folders() -> tuple[Path, ...]:
    """Return the folder of the user, then the folders in TACTFUL_MODELS, which are separated as in PATH."""
    folders = os.environ.get("TACTFUL_MODELS", "").split(os.pathsep)
    return (site_folder("manifests"), *(Path(folder) for folder in folders if folder))
