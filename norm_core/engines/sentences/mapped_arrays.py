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
from norm_core.models.store import sha256_of_file

Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)
file_sha256 = lru_cache(maxsize=4)(sha256_of_file)


def mapped_arrays(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Map the arrays from a cached file, which is computed if it is missing.

    Only pages that are read take memory. If the cache cannot be written, the arrays stay in memory.
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
        _log.warning("%s: cannot be written, so each start computes the arrays anew: %s", file.parent, error)
        return arrays
    return _map(file) or arrays


def _map(file: Path) -> Arrays:
    """Map the arrays of a cached file; return an empty dict if it is missing or damaged."""
    try:
        record = np.lib.format.open_memmap(file, mode="r")  # np.load would open archives, too
        if record.dtype.names is None:
            raise ValueError("it holds one array alone")
        return {key: np.asarray(record[key][0]) for key in record.dtype.names}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, IndexError, TokenError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return {}


def release_pages(array: Any) -> None:
    """Release the mapped pages that were read, until they are read again."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap):
        array.madvise(mmap.MADV_DONTNEED)
