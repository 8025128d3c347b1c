"""The sentence encoder as an engine: an option is as likely as its meaning is near the prompt's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.config import ConfigError
from norm_core.engines.call import DECODE, PREFILL, Call
from norm_core.engines.fault import EngineFailedError, InvalidRequestError
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.reply import Card
from norm_core.engines.sentences import MODEL, SentenceEncoder
from norm_core.models.manifest import Manifest
from norm_core.models.store import Weights

# A cosine of 0.1 more makes an option about e times as likely; a calibration file may say otherwise.
_NEARNESS_SCALE = 0.1


class EncoderBackend:
    """For questions of similarity. It reads words alone, and neither follows instructions nor writes."""

    def __init__(self, sentences: SentenceEncoder) -> None:
        self._sentences = sentences
        self.card = Card(
            model=MODEL, engine="encoder", weights_sha256=sentences.weights_sha256, max_images=0, generates=False
        )

    @contextmanager
    def encoded(self, prefix: Prompt, call: Call) -> Iterator[str]:
        """The prefix's words."""
        yield _said(prefix)

    def score(self, prefix: str, question: Question, call: Call) -> Sequence[float]:
        call.enter(PREFILL)
        asked = " ".join(filter(None, (prefix, _said(Prompt(version="", parts=question.parts)))))
        vectors = self._sentences.encode([asked, *question.options])
        call.enter(DECODE)
        return [float(nearness) / _NEARNESS_SCALE for nearness in vectors[1:] @ vectors[0]]

    def generate(self, prompt: Prompt, call: Call, *, schema: dict[str, Any] | None, max_tokens: int, seed: int) -> str:
        raise InvalidRequestError("the sentence encoder scores options and cannot write")

    def close(self) -> None:
        """Holds nothing that outlives it."""


def opened(manifest: Manifest, weights: Weights) -> EncoderBackend:
    """The encoder on the weights that its package carries; it has no others, nor settings."""
    if manifest.name != MODEL:
        raise EngineFailedError(f"the encoder engine reads the weights of {MODEL} alone, not those of {manifest.name}")
    if manifest.settings:
        raise ConfigError(f"{manifest.name}: settings: the encoder has none, not {', '.join(manifest.settings)}")
    return EncoderBackend(SentenceEncoder())


def _said(prompt: Prompt) -> str:
    """What a sentence encoder makes of a prompt: the words, without fences."""
    return " ".join(part.text for part in prompt.parts if not isinstance(part, Image))
