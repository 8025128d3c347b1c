"""What the selector needs of a model: an Engine, or a SharedEngine bound to the urgency of an action."""

from typing import Any, Protocol

from action_selector.choose.choose import Asks
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import Card, Generation, Scores
from norm_core.engines.request_context import Limit
from norm_core.engines.shared_engine import SharedEngine, Urgency


class Model(Asks, Protocol):
    """Scores options and, where its card says so, writes."""

    def generate(
        self, prompt: Prompt, schema: Any = None, *, max_tokens: int = 256, limit: Limit | None = None
    ) -> Generation[Any]: ...


class Urgent:
    """A shared engine asked ahead of all else: a robot that waits for its next action stands still."""

    def __init__(self, shared: SharedEngine) -> None:
        self._shared = shared

    @property
    def card(self) -> Card:
        return self._shared.card

    def ask_many(self, prefix: Prompt, questions: Any, limit: Limit | None = None) -> list[Scores]:
        """SharedEngine.ask_many, first in the queue."""
        return self._shared.ask_many(prefix, questions, limit, Urgency.ACTION)

    def generate(
        self, prompt: Prompt, schema: Any = None, *, max_tokens: int = 256, limit: Limit | None = None
    ) -> Generation[Any]:
        """SharedEngine.generate, first in the queue."""
        return self._shared.generate(prompt, schema, max_tokens=max_tokens, limit=limit, urgency=Urgency.ACTION)
