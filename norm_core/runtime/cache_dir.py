"""The cache folder for files that can be made again: converted models, compiled engines, embeddings."""

import os
from pathlib import Path


def make_cache_folder(name: str) -> Path:
    """Return the cache folder of that name, beside the set-up's state or in the user's cache; do not create it."""
    state = os.environ.get("TACTFUL_STATE")
    return (Path(state) if state else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "tactful")) / name
