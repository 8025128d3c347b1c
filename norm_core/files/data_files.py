"""Find data files: shipped ones, those of a site, and the cache."""

import os
from importlib.resources import files
from pathlib import Path


def shipped_file(package: str, name: str = "") -> Path:
    """Return the path of a file or folder that a package ships, in a checkout or an installed wheel.

    A checkout links folders outside our packages into the package that reads them; a wheel contains copies.
    """
    return Path(str(files(package)), name).resolve()


def shipped_text(package: str, name: str) -> str:
    """Read a text that a package ships."""
    return shipped_file(package, name).read_text(encoding="utf-8")


def site_folder(name: str) -> Path:
    """Return the folder of that name in the user's data folder; it may be absent, and no set-up empties it."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share", "tactful", name)


def make_cache_folder(name: str) -> Path:
    """Return the cache folder of that name, beside the set-up's state or in the user's cache; do not create it."""
    state = os.environ.get("TACTFUL_STATE")
    return (Path(state) if state else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "tactful")) / name
