"""What an engine needs of whatever runs a model. One thread at a time calls it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext

P = TypeVar("P")


class Backend(Protocol[P]):
    """A model; P is its encoded prefix. Whatever it raises becomes an outcome, and the next call must work."""

    @property
    def model_info(self) -> ModelInfo: ...

    def encoded(self, prefix: Prompt, call: RequestContext) -> AbstractContextManager[P]:
        """The prefix, encoded once for every question asked within; what it holds is given back on leaving."""
        ...

    def score(self, prefix: P, question: Question, call: RequestContext) -> Sequence[float]:
        """A log-probability for each option, not necessarily normalised, from one pass over the question."""
        ...

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """What the model writes, greedily where seed is 0; schema is a JSON schema that it may be held to."""
        ...

    def close(self) -> None:
        """Gives all memory back."""
        ...
