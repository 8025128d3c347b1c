"""Where things are kept that can be made or fetched again: weights, converted models, compiled engines."""

import os
from pathlib import Path


def make_cache_folder(name: str) -> Path:
    """The folder of that name beside the set-up's own state, or in the user's cache; not made yet."""
    state = os.environ.get("TACTFUL_STATE")
    return (Path(state) if state else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "tactful")) / name
