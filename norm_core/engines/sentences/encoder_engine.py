"""A sentence encoder as an engine: the nearer an option's meaning is to the prompt's, the likelier it is."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from norm_core.engines.errors import EngineFailedError, InvalidRequestError
from norm_core.engines.onnx.session import open_session
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PREFILL, RequestContext
from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS, MODEL, RecentVectors, SentenceEncoder, Vectors
from norm_core.models.manifest import Manifest
from norm_core.models.store import ModelFiles
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM

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


# A cosine higher by 0.1 makes an option about e times as likely; a calibration file may change that.
_NEARNESS_SCALE = 0.1


class SentenceVectors(Protocol):
    """An encoder that returns one unit vector per sentence."""

    @property
    def weights_sha256(self) -> str:
        """The hash of the file with the encoder's weights."""

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row of unit length per sentence."""


class EncoderBackend:
    """A backend for questions of similarity. It reads words only; it neither follows instructions nor writes."""

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
        yield _said(prefix)

    def score(self, prefix: str, question: Question, call: RequestContext) -> Sequence[float]:
        """Return each option's similarity to the prefix and question, scaled as a log-probability."""
        call.enter_segment(PREFILL)
        asked = " ".join(filter(None, (prefix, _said(Prompt(version="", parts=question.parts)))))
        vectors = self._sentences.encode([asked, *question.options])
        call.enter_segment(DECODE)
        return [round(float(nearness), COSINE_DIGITS) / _NEARNESS_SCALE for nearness in vectors[1:] @ vectors[0]]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Raise InvalidRequestError, because an encoder cannot write."""
        raise InvalidRequestError("the sentence encoder scores options and cannot write")

    def close(self) -> None:
        """Do nothing: there is no memory to release."""


def open_backend(manifest: Manifest, weights: ModelFiles) -> EncoderBackend:
    """Load the packaged encoder, or one from a folder with model.onnx and tokenizer.json; it has no settings."""
    if manifest.settings:
        raise ConfigError(f"{manifest.name}: settings: the encoder has none, not {', '.join(manifest.settings)}")
    if manifest.name == MODEL:
        return EncoderBackend(SentenceEncoder(), quantization=manifest.quantization)
    if weights.folder is None or not {"model.onnx", "tokenizer.json"} <= {file.path for file in manifest.files}:
        raise EngineFailedError(
            f"the encoder engine reads model.onnx and tokenizer.json, which {manifest.name} does not list: "
            f"make them with {PROGRAM} models quantize {manifest.name} --recipe int8-encoder"
        )
    most_tokens = manifest.context_tokens or DEFAULT_TOKENS
    sentences = OnnxSentences(weights.folder, weights.sha256, most_tokens=most_tokens)
    return EncoderBackend(sentences, manifest.name, manifest.quantization)


def _said(prompt: Prompt) -> str:
    """Return the words of a prompt without fences."""
    return " ".join(part.text for part in prompt.parts if not isinstance(part, Image))
