"""The interfaces on both sides of an engine: Engine, which callers ask, and Backend, which runs the model."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.records.record import record
from norm_core.records.status import Counter

P = TypeVar("P")
S = TypeVar("S", bound=BaseModel)


@record
class EngineHealth:
    """Problems with their remedies, and counters since the engine was opened."""

    issues: tuple[str, ...] = ()
    counters: tuple[Counter, ...] = ()


@record
class ServerStatus:
    """The state of the server of a model; `outage` is empty while it can be reached."""

    outage: str = ""
    requests_refused: int = 0


class Engine(Protocol):
    """An engine, or a lease of one."""

    @property
    def model_info(self) -> ModelInfo:
        """The identity and limits of the model."""

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question over one shared prefix."""

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Write text, with a value of `schema` where given; an outcome other than ANSWERED has no value."""


class Backend(Protocol[P]):
    """A model runtime, called from one thread at a time; P is its encoded prefix.

    Any exception becomes an outcome, and the next call must work. A backend that reads several questions at once has a
    method `expect(prefix, questions)`, which gets the questions before they are scored.
    """

    @property
    def model_info(self) -> ModelInfo:
        """The identity of the model, and its limits of tokens, images and options."""

    def encoded(self, prefix: Prompt, call: RequestContext) -> AbstractContextManager[P]:
        """Encode the prefix once for all questions inside the block; release it on exit."""
        ...

    def score(self, prefix: P, question: Question, call: RequestContext) -> Sequence[float]:
        """Return a log-probability for each option, not necessarily normalised, from one pass over the question."""
        ...

    def generate(
        self, prompt: Prompt, call: RequestContext, *, schema: dict[str, Any] | None, max_tokens: int, seed: int
    ) -> str:
        """Return the text of the model, greedy if `seed` is 0; a JSON schema may constrain it."""
        ...

    def close(self) -> None:
        """Release all memory."""
        ...
