"""A model that answers at random, as the control of a run: seeded by the prompt's digest and the run's seed."""

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
_DRAWS = 1000


class RandomBackend:
    """Scores options at random; writes random words of the prompt, in the form of a schema where one is asked for."""

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
        return [math.log(draw.randint(1, _DRAWS)) for _ in question.options]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Return random words of the prompt, in the form that the schema asks for."""
        draw, text = random.Random(f"{self._seed}:{seed}:{prompt.digest}"), prompt.as_text()
        words = re.findall(r"\w+", text) or [RANDOM]
        if schema is not None:
            return json.dumps(_value(schema, schema.get("$defs", {}), draw, words))
        return _phrase(draw, words)

    def close(self) -> None:
        """Do nothing: there is no memory to release."""


def _value(schema: dict[str, Any], defs: dict[str, Any], draw: random.Random, words: Sequence[str]) -> Any:
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rpartition("/")[2]], defs, draw, words)
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if schema["type"] == "object":
        return {name: _value(part, defs, draw, words) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        count = schema.get("minItems", 0) + draw.randint(0, 2)
        return [_value(schema["items"], defs, draw, words) for _ in range(count)]
    return _phrase(draw, words)[: schema.get("maxLength")]


def _phrase(draw: random.Random, words: Sequence[str]) -> str:
    return " ".join(draw.choice(words) for _ in range(8))
