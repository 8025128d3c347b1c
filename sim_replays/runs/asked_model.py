"""A model that a run asks: each question has a limit in real time."""

import time
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.runtime.time import Clock, WallClock
from sim_replays.runs.random_model import RANDOM, RandomBackend

TIMEOUT_S = 600.0  # of a question, in real time

S = TypeVar("S", bound=BaseModel)


class TimeLimit(Deadline):
    """The deadline of a caller, and a limit in real time.

    Latencies stay in the time of the caller's clock, so that the answers of a replay are equal each time.
    """

    def __init__(self, deadline: Deadline, until_s: float) -> None:
        super().__init__(deadline.clock, deadline.deadline_ns)
        self._deadline = deadline
        self._until_s = until_s

    def from_now(self, end_ns: int | None = None) -> "TimeLimit":
        """Return the same limits for a further question."""
        return TimeLimit(self._deadline.from_now(end_ns), self._until_s)

    def remaining_s(self) -> float:
        """Return the time until the earlier of both."""
        limit_s = max(0.0, self._until_s - time.monotonic())
        deadline_s = self._deadline.remaining_s()
        return limit_s if deadline_s is None else min(limit_s, deadline_s)

    def check(self) -> None:
        """Check both limits. Raises PastDeadlineError if either has passed."""
        super().check()
        self._deadline.check()
        if time.monotonic() >= self._until_s:
            raise PastDeadlineError(f"the {TIMEOUT_S:.0f} s of the question are over; ask a faster model")


class LimitedModel:
    """A model whose questions each have a limit in real time."""

    def __init__(self, model: Engine) -> None:
        self._model = model
        self._until_s: float | None = None

    @property
    def model_info(self) -> ModelInfo:
        """The identity and limits of the model."""
        return self._model.model_info

    def end_question(self) -> None:
        """End a question; the next request starts the time of another one."""
        self._until_s = None

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question."""
        return self._model.ask_many(prefix, questions, self._limit_time(deadline))

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Generate text."""
        limit = self._limit_time(deadline)
        return self._model.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=limit)

    def _limit_time(self, deadline: Deadline | None) -> TimeLimit:
        """Limit the time of the current question, which begins with its first request."""
        if self._until_s is None:
            self._until_s = time.monotonic() + TIMEOUT_S
        return TimeLimit(deadline or Deadline(WallClock()), self._until_s)


def open_model(name: str, clock: Clock, seed: int = 0) -> DirectEngine:
    """Open a model by name, which may take long; the name `random` opens one that answers at random, by the seed."""
    if name == RANDOM:
        return DirectEngine(RandomBackend(seed), clock)
    manifest = Catalogue().read_manifest(name)
    if manifest.engine is EngineKind.OPENAI:
        manifest = manifest.model_copy(update={"settings": {"answers": "auto", **manifest.settings}})
    return open_engine(manifest, clock)
