"""The manifests by name: those of the project, and a team's own."""

import difflib
import os
from pathlib import Path

from norm_core.models.manifest import Manifest
from norm_core.runtime.cache_dir import make_cache_folder
from norm_core.runtime.config import ConfigError, load_config
from norm_core.runtime.data_files import shipped_file

_SHIPPED = shipped_file("norm_core.models", "shipped")


class Catalogue:
    """Reads the folders' `NAME.yaml` on demand; of two of one name the later folder's counts."""

    def __init__(self, folders: tuple[Path, ...] | None = None) -> None:
        self._folders = folders or (_SHIPPED, *_own_folders())

    @property
    def own(self) -> Path:
        """Where a new manifest goes: the last folder, which need not be there yet."""
        return self._folders[-1]

    def names(self) -> list[str]:
        """What can be named, without reading any."""
        return sorted({path.stem for folder in self._folders for path in folder.glob("*.yaml")})

    def path(self, name: str) -> Path:
        for folder in reversed(self._folders):
            if (path := folder / f"{name}.yaml").is_file():
                return path
        close = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(f"there is no model {name!r}{hint}; `tactful models list` shows all")

    def manifest(self, name: str) -> Manifest:
        path = self.path(name)
        manifest = load_config(Manifest, path)
        if manifest.name != path.stem:
            raise ConfigError(f"{path}: name: is {manifest.name!r}, and the file's name says {path.stem!r}")
        return manifest


def _own_folders() -> tuple[Path, ...]:
    """What recipes made here, then the folders in TACTFUL_MODELS, which are separated as those of PATH are."""
    given = os.environ.get("TACTFUL_MODELS", "").split(os.pathsep)
    return (make_cache_folder("manifests"), *(Path(folder) for folder in given if folder))
