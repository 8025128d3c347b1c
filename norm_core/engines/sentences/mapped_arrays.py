"""Arrays in cached files that all processes on the machine share."""

import logging
import mmap
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.files.atomic_file import atomic_file
from norm_core.files.data_files import make_cache_folder
from norm_core.models.store import hash_file

Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)
# Cached, because several objects ask for the hash of the same weights.
hash_file_once = lru_cache(maxsize=4)(hash_file)


def load_mapped_arrays(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Map the arrays of a cached file, which is written first if it is missing.

    Only pages that are read take memory. If the cache cannot be written, the arrays stay in memory.
    """
    file = make_cache_folder("sentences") / name
    if arrays := _map_file(file):
        return arrays
    arrays = compute()
    layout = np.dtype([(key, array.dtype, array.shape) for key, array in arrays.items()])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as stream:
            np.save(stream, np.array([tuple(arrays.values())], layout))
    except OSError as error:
        _log.warning(
            "%s: cannot be written, so each start computes the arrays anew: %s; free room there, or make it writable",
            file.parent,
            error,
        )
        return arrays
    return _map_file(file) or arrays


def _map_file(file: Path) -> Arrays:
    """Map the arrays of a cached file; return an empty dict if it is missing or damaged."""
    try:
        table = np.lib.format.open_memmap(file, mode="r")  # np.load would open archives, too
        if table.dtype.names is None:
            raise ValueError("it is a single array")
        return {key: np.asarray(table[key][0]) for key in table.dtype.names}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, IndexError, TokenError) as error:
        _log.warning("%s is damaged, and computed anew: %s", file, error)
        return {}


def release_pages(array: Any) -> None:
    """Release the mapped pages that were read; the next access reads them again."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap):
        array.madvise(mmap.MADV_DONTNEED)
