"""Arrays in cached files that every process on the machine shares."""

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
from norm_core.models.store import sha256_of_file

Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)
file_sha256 = lru_cache(maxsize=4)(sha256_of_file)


def mapped_arrays(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Map the arrays that an earlier start left in a cached file, or compute and leave them.

    Only pages that are read take memory. A cache that cannot be written leaves the arrays in memory.
    """
    file = make_cache_folder("sentences") / name
    if mapped := _map(file):
        return mapped
    arrays = compute()
    layout = np.dtype([(key, array.dtype, array.shape) for key, array in arrays.items()])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as stream:
            np.save(stream, np.array([tuple(arrays.values())], layout))
    except OSError as error:
        _log.warning("%s: cannot hold what was computed, so each start computes it: %s", file.parent, error)
        return arrays
    return _map(file) or arrays


def _map(file: Path) -> Arrays:
    """Map the arrays of a cached file; return none if it is missing or damaged."""
    try:
        held = np.lib.format.open_memmap(file, mode="r")  # np.load would open archives, too
        if held.dtype.names is None:
            raise ValueError("it holds one array alone")
        return {key: np.asarray(held[key][0]) for key in held.dtype.names}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, IndexError, TokenError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return {}


def release_pages(array: Any) -> None:
    """Let the mapped pages that were read so far take no memory until they are read again."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap):
        array.madvise(mmap.MADV_DONTNEED)
