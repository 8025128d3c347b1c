"""Cache arrays that follow from fixed sentences on disk, so that only the first start computes them."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder, Vectors
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.atomic_file import atomic_file
from norm_core.runtime.cache_dir import make_cache_folder

_log = logging.getLogger(__name__)


def cached_vectors(encoder: SentenceEncoder, texts: Sequence[str]) -> Vectors:
    """Return one row per text."""
    made_of = [encoder.weights_sha256, *texts]
    return cached_array(made_of, (len(texts), encoder.dimensions), lambda: encoder.encode(texts))


def cached_array(made_of: Sequence[object], shape: tuple[int, ...], compute: Callable[[], Vectors]) -> Vectors:
    """Return the array of a shape that was computed of the same things before, or else compute it.

    If the cache cannot be written, each start computes it.
    """
    file = make_cache_folder("sentences") / f"{sha256_of(made_of)[:16]}.npy"
    kept = _read(file, shape)
    if kept is not None:
        return kept
    made = compute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as written:
            np.save(written, made)
    except OSError as error:
        _log.warning("%s: cannot hold what was computed, so each start computes it: %s", file.parent, error)
    return made


def _read(file: Path, shape: tuple[int, ...]) -> Vectors | None:
    """Return the cached array, or None if they are missing or damaged."""
    try:
        vectors: Vectors = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return None
    return vectors if vectors.shape == shape and vectors.dtype == np.float32 else None
