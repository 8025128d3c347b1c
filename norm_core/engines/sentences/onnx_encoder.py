"""Sentence embeddings with an ONNX encoder and its tokenizer, as the recipe int8-encoder makes them."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import open_session
from norm_core.engines.sentences.sentence_encoder import LONGEST_CHARACTERS, Vectors

DEFAULT_TOKENS = 256


class OnnxSentences:
    """Unit vectors of sentences; the most recent ones are cached, and any thread may ask."""

    def __init__(
        self,
        folder: Path,
        weights_sha256: str,
        *,
        most_tokens: int = DEFAULT_TOKENS,
        threads: int = 1,
        remembered: int = 4096,
    ) -> None:
        self.weights_sha256 = weights_sha256
        self._tokenizer = open_tokenizer(folder / "tokenizer.json", most_tokens)
        self._session = open_session(folder / "model.onnx", threads=threads)
        self._remembered = remembered
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row per sentence, each encoded alone."""
        with self._lock:
            rows = [self._vector(sentence) for sentence in sentences]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    @property
    def remembered_count(self) -> int:
        """How many sentences are remembered now."""
        return len(self._vectors)

    def _vector(self, sentence: str) -> Vectors:
        sentence = sentence[:LONGEST_CHARACTERS].encode("utf-8", "replace").decode()  # a lone surrogate is not text
        if sentence not in self._vectors:
            tokens = np.array([self._tokenizer.encode(sentence).ids], np.int64)
            self._vectors[sentence] = self._session.run(["vector"], {"tokens": tokens})[0][0]
            if len(self._vectors) > self._remembered:
                self._vectors.popitem(last=False)
        self._vectors.move_to_end(sentence)
        return self._vectors[sentence]


def open_tokenizer(path: Path, most_tokens: int = DEFAULT_TOKENS) -> Any:
    """Load a tokenizer that truncates long texts and does not pad."""
    # Imported here, because the packaged encoder does not need it.
    from tokenizers import Tokenizer  # noqa: PLC0415

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EngineFailedError(f"{path}: is no tokenizer: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(most_tokens)
    return tokenizer
