"""The model interface of the selector: an Engine, or a lease of one."""

from typing import Any, Protocol

from action_selector.choose.candidate_scoring import ScoringModel
from norm_core.engines.prompt import Prompt
from norm_core.engines.reply import Generation
from norm_core.engines.request_context import Deadline


class SelectorModel(ScoringModel, Protocol):
    """A model that scores options and, where its manifest allows, writes text."""

    def generate(
        self, prompt: Prompt, schema: Any = None, *, max_tokens: int = 256, deadline: Deadline | None = None
    ) -> Generation[Any]:
        """Write text that fits `schema`, where given, of at most `max_tokens` tokens."""
