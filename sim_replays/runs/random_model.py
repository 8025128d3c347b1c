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
# The lines of a prompt that offer options, and the fields of a JSON form that it asks for.
_OPTION = re.compile(r"^\s*\(?([A-Z]|\d{1,2})[.):]\s", re.MULTILINE)
_FIELD = re.compile(r'"(\w+)"\s*:\s*([^,}\n]+)')
_DRAWS = 1000


class RandomBackend:
    """Scores options at random; writes text in the asked form: a schema's, a JSON form's or an option's label."""

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
        """Return a random text in the form that the schema or the prompt asks for."""
        draw, text = random.Random(f"{self._seed}:{seed}:{prompt.digest}"), prompt.as_text()
        words = re.findall(r"\w+", text) or [RANDOM]
        if schema is not None:
            return json.dumps(_value(schema, schema.get("$defs", {}), draw, words))
        if fields := _FIELD.findall(text.rpartition("{")[2] if "{" in text else ""):
            return json.dumps({name: _alternative(form, draw, words) for name, form in fields})
        labels = list(dict.fromkeys(_OPTION.findall(text)))
        return draw.choice(labels) if labels else _phrase(draw, words)

    def close(self) -> None:
        """Do nothing: there is no memory to release."""


def _alternative(form: str, draw: random.Random, words: Sequence[str]) -> str:
    """Draw one of the alternatives that a form names, such as "A" | "B", or random words where it names none."""
    named = re.findall(r'"([^"]*)"', form)
    return draw.choice(named) if len(named) > 1 else _phrase(draw, words)


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
