"""Where data files are: those that come with Tactful, and a site's own."""

import os
from importlib.resources import files
from pathlib import Path


def shipped_file(package: str, name: str = "") -> Path:
    """Return the path of a file or folder that a package ships, in a checkout and in an installed wheel alike.

    A checkout links folders that lie outside our packages into the package that reads them; a wheel holds copies.
    """
    return Path(str(files(package)), name).resolve()


def site_folder(name: str) -> Path:
    """Return the folder of that name in the user's data folder, which may be absent; no set-up empties it."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share", "tactful", name)
