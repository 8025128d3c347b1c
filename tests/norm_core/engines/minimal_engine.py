"""An engine in full: an option is as likely as the words that it shares with the prompt are many."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.engines.errors import InvalidRequestError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PREFILL, RequestContext

CONTEXT_TOKENS = 1000


class WordsBackend:
    """Whatever it raises becomes an outcome of that question, and the next one must work."""

    model_info = ModelInfo(model="shared-words", engine="words", context_tokens=CONTEXT_TOKENS, max_images=0)

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[list[str]]:
        # Here a model would read the prefix, looking at call.check() between steps of some tenths of a second.
        call.enter_segment(PREFILL)
        yield self._read(prefix, call)

    def score(self, prefix: list[str], question: Question, call: RequestContext) -> Sequence[float]:
        call.enter_segment(PREFILL)
        asked = {*prefix, *self._read(Prompt(version="", parts=question.parts), call)}
        call.enter_segment(DECODE)
        return [float(len(asked & set(option.lower().split()))) for option in question.options]

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        call.enter_segment(PREFILL)
        written = self._read(prompt, call)[-max_tokens:]
        call.add_usage(completion_tokens=len(written))
        return " ".join(written)

    def close(self) -> None:
        """Here a model would give its memory back."""

    def _read(self, prompt: Prompt, call: RequestContext) -> list[str]:
        call.check()
        tokens = prompt.as_text().lower().split()
        if len(tokens) > CONTEXT_TOKENS:
            raise InvalidRequestError(f"the prompt has {len(tokens)} tokens, and the context holds {CONTEXT_TOKENS}")
        call.add_usage(prompt_tokens=len(tokens))
        return tokens
