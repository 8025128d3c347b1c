"""Cache the embeddings of fixed sentences on disk, so that only the first start computes them."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder, Vectors
from norm_core.records.json_codec import sha256_of
from norm_core.runtime.atomic_file import atomic_file
from norm_core.runtime.cache_dir import make_cache_folder

_log = logging.getLogger(__name__)


def cached_vectors(encoder: SentenceEncoder, texts: Sequence[str]) -> Vectors:
    """Return one row per text; compute the rows again if the cache cannot be written."""
    file = make_cache_folder("sentences") / f"{sha256_of([encoder.weights_sha256, *texts])[:16]}.npy"
    kept = _read(file, (len(texts), encoder.dimensions))
    if kept is not None:
        return kept
    vectors = encoder.encode(texts)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as made:
            np.save(made, vectors)
    except OSError as error:
        _log.warning("%s: cannot hold %d sentences, so each start encodes them: %s", file.parent, len(texts), error)
    return vectors


def _read(file: Path, shape: tuple[int, int]) -> Vectors | None:
    """Return the cached rows, or None if they are missing or damaged."""
    try:
        vectors: Vectors = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return None
    return vectors if vectors.shape == shape and vectors.dtype == np.float32 else None
