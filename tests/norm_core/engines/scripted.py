"""A backend that does what a test tells it to."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo
from norm_core.engines.request_context import DECODE, PREFILL, RequestContext


class ScriptedBackend:
    """Answers with what `act` makes of the question; counts what is open and what was encoded."""

    def __init__(self, act: Callable[[Question, RequestContext], Sequence[float]], text: str = "{}") -> None:
        self.model_info = ModelInfo(model="scripted", engine="scripted", max_images=2, max_options=50)
        self.act, self.text = act, text
        self.encoded_count = self.open_count = 0
        self.closed = False

    @contextmanager
    def encoded(self, prefix: Prompt, call: RequestContext) -> Iterator[Prompt]:
        self.encoded_count += 1
        self.open_count += 1
        call.enter_segment(PREFILL)
        try:
            yield prefix
        finally:
            self.open_count -= 1

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        call.enter_segment(DECODE)
        return self.act(question, call)

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        call.enter_segment(DECODE)
        call.add_usage(completion_tokens=1)
        return self.text

    def close(self) -> None:
        self.closed = True
