"""The packaged embeddings of all tokens, mapped from one cached file that every process on the machine shares."""

import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.models.store import sha256_of_file
from norm_core.runtime.atomic_file import atomic_file
from norm_core.runtime.cache_dir import make_cache_folder

PARTS = 17  # the package stores the embeddings in so many parts, each with its own scale, interleaved by token

Table = NDArray[np.uint8]

_log = logging.getLogger(__name__)


file_sha256 = lru_cache(maxsize=4)(sha256_of_file)


def token_table(weights: Path, arrays: Any) -> Table:
    """Return one row per token; `arrays` are those of the file `weights`.

    Only rows that are read take memory. A cache that cannot be written leaves the whole table in memory.
    """
    first = arrays["q1"]
    shape = PARTS * len(first), first.shape[1]
    file = make_cache_folder("sentences") / f"{file_sha256(weights)[:16]}.tokens.npy"
    mapped = _map(file, shape)
    if mapped is not None:
        return mapped
    table = np.empty(shape, np.uint8)
    for part in range(PARTS):
        table[part::PARTS] = arrays[f"q{part + 1}"] if part else first
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as made:
            np.save(made, table)
    except OSError as error:
        _log.warning("%s: cannot hold the encoder's tokens, so each process keeps its own: %s", file.parent, error)
        return table
    mapped = _map(file, shape)
    return table if mapped is None else mapped


def _map(file: Path, shape: tuple[int, int]) -> Table | None:
    """Map the cached table; return None if it is missing or damaged."""
    try:
        table = np.load(file, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return None
    return np.asarray(table) if table.shape == shape and table.dtype == np.uint8 else None
