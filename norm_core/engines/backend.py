"""The interface between an engine and a model runtime. Calls come from one thread at a time."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import RequestContext

P = TypeVar("P")


class Backend(Protocol[P]):
    """A model runtime; P is its encoded prefix. Any exception becomes an outcome, and the next call must work."""

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity and its limits of tokens, images and options."""

    def encoded(self, prefix: Prompt, call: RequestContext) -> AbstractContextManager[P]:
        """Encode the prefix once for all questions inside the block; release it on exit."""
        ...

    def score(self, prefix: P, question: Question, call: RequestContext) -> Sequence[float]:
        """Return a log-probability for each option, not necessarily normalised, from one pass over the question."""
        ...

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Return the model's text, greedy if seed is 0; `schema` is a JSON schema that may constrain it."""
        ...

    def close(self) -> None:
        """Release all memory."""
        ...
