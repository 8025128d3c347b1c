"""Sentence embeddings with an ONNX encoder and its tokenizer, as the recipe int8-encoder makes them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import open_session
from norm_core.engines.sentences.sentence_encoder import RecentVectors, Vectors

DEFAULT_TOKENS = 256


class OnnxSentences(RecentVectors):
    """An encoder from a folder with model.onnx and tokenizer.json."""

    def __init__(
        self, folder: Path, weights_sha256: str, *, most_tokens: int = DEFAULT_TOKENS, remembered: int = 4096
    ) -> None:
        super().__init__(remembered)
        self.weights_sha256 = weights_sha256
        self._tokenizer = open_tokenizer(folder / "tokenizer.json", most_tokens)
        self._session = open_session(folder / "model.onnx")

    def _encode_new(self, texts: list[str]) -> Iterable[Vectors]:
        for text in texts:
            tokens = np.array([self._tokenizer.encode(text).ids], np.int64)
            yield self._session.run(["vector"], {"tokens": tokens})[0][0]


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
