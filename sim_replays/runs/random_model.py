"""A model that answers at random, by the digest of the prompt and the seed of the run: the control of a run."""

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext

RANDOM = "random"
_SCORE_STEPS = 1000  # scores of an option
_PHRASE_WORDS = 8
_MAX_EXTRA_ITEMS = 2  # of a list, beyond its least number


class RandomBackend:
    """Backend that scores options at random, and writes random words of the prompt in the form of a schema."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self.model_info = ModelInfo(model=RANDOM, engine=RANDOM, device="CPU")

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[Prompt]:
        """Return the prefix, whose digest seeds the answers."""
        yield prefix

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        """Return a random log-probability for each option."""
        draw = random.Random(f"{self._seed}:{question.digest(prefix)}")
        return [math.log(draw.randint(1, _SCORE_STEPS)) for _ in question.options]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Return random words of the prompt, in the form that the schema asks for."""
        draw = random.Random(f"{self._seed}:{seed}:{prompt.digest}")
        words = re.findall(r"\w+", prompt.as_text()) or [RANDOM]
        if schema is not None:
            return json.dumps(_draw_value(schema, schema.get("$defs", {}), draw, words))
        return _draw_phrase(draw, words)

    def close(self) -> None:
        """Do nothing, because there is no memory to release."""


def _draw_value(schema: dict[str, Any], defs: dict[str, Any], draw: random.Random, words: Sequence[str]) -> Any:
    """Return a random value that fits a JSON schema."""
    if "$ref" in schema:
        return _draw_value(defs[schema["$ref"].rpartition("/")[2]], defs, draw, words)
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if schema["type"] == "object":
        return {name: _draw_value(part, defs, draw, words) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        count = schema.get("minItems", 0) + draw.randint(0, _MAX_EXTRA_ITEMS)
        return [_draw_value(schema["items"], defs, draw, words) for _ in range(count)]
    return _draw_phrase(draw, words)[: schema.get("maxLength")]


def _draw_phrase(draw: random.Random, words: Sequence[str]) -> str:
    return " ".join(draw.choice(words) for _ in range(_PHRASE_WORDS))
