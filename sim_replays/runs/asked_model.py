"""A model that a replay asks: each request is noted, and each question has a limit in real time."""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

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
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.time import Clock, WallClock
from sim_replays.runs.random_model import RANDOM, RandomBackend

TIMEOUT_S = 600.0
PICTURE_MARK = "[picture]"

S = TypeVar("S", bound=BaseModel)


@record
class AskedRequest:
    """One request to the model."""

    step: str
    prompt: str
    pictures: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    reply: str = ""
    probabilities: tuple[float, ...] = ()
    outcome: Outcome
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    took_s: float = 0.0


class TimeLimit(Deadline):
    """A caller's deadline with a limit in real time, up to which a busy server is waited for.

    Latencies stay in the time of the caller's clock, so that a replay's answers are equal each time.
    """

    is_patient = True

    def __init__(self, asked: Deadline, until_s: float) -> None:
        super().__init__(asked.clock, asked.deadline_ns)
        self._asked, self._until_s = asked, until_s

    def from_now(self) -> "TimeLimit":
        """Return the same limits for a further question."""
        return TimeLimit(self._asked.from_now(), self._until_s)

    def remaining_s(self) -> float:
        """Return the time left by both limits."""
        left_s, asked_s = max(0.0, self._until_s - time.monotonic()), self._asked.remaining_s()
        return left_s if asked_s is None else min(left_s, asked_s)

    def check(self) -> None:
        """Raise PastDeadlineError if either has passed."""
        super().check()
        self._asked.check()
        if time.monotonic() >= self._until_s:
            raise PastDeadlineError(f"the question's {TIMEOUT_S:.0f} s are over")


class AskedModel:
    """Ask a model, one question of a replay at a time, and note each request."""

    def __init__(self, model: Engine) -> None:
        self._model = model
        self._requests: list[AskedRequest] = []
        self._until_s: float | None = None

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity and limits."""
        return self._model.model_info

    def end_question(self) -> tuple[AskedRequest, ...]:
        """Return the requests since the last question ended; the next request starts the time of another."""
        requests, self._requests, self._until_s = self._requests, [], None
        return tuple(requests)

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Score the options of each question."""
        began_s = time.monotonic()
        answers = self._model.ask_many(prefix, questions, self._limit(deadline))
        took_s = (time.monotonic() - began_s) / max(len(answers), 1)
        for question, scores in zip(questions, answers, strict=True):
            step = question.step or _step(prefix)
            self._note(scores, question.after(prefix), step, took_s, question.options, scores.probabilities)
        return answers

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Write text."""
        began_s = time.monotonic()
        written = self._model.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=self._limit(deadline))
        self._note(written, prompt, _step(prompt), time.monotonic() - began_s)
        return written

    def _limit(self, deadline: Deadline | None) -> TimeLimit:
        if self._until_s is None:
            self._until_s = time.monotonic() + TIMEOUT_S
        return TimeLimit(deadline or Deadline(WallClock()), self._until_s)

    def _note(  # noqa: PLR0917
        self,
        answer: Scores | Generation[Any],
        prompt: Prompt,
        step: str,
        took_s: float,
        options: tuple[str, ...] = (),
        probabilities: tuple[float, ...] = (),
    ) -> None:
        self._requests.append(
            AskedRequest(
                step=step,
                prompt=prompt.as_text(PICTURE_MARK),
                pictures=tuple(image.sha256 for image in prompt.images),
                options=options,
                reply=answer.text,
                probabilities=probabilities,
                outcome=answer.outcome,
                reason=answer.reason,
                prompt_tokens=answer.usage.prompt_tokens + answer.usage.cached_tokens,
                completion_tokens=answer.usage.completion_tokens,
                took_s=took_s,
            )
        )


def open_model(name: str, clock: Clock, seed: int = 0) -> DirectEngine:
    """Open a model by name, which may take long; `random` answers at random, by the seed."""
    if name == RANDOM:
        return DirectEngine(RandomBackend(seed), clock)
    manifest = Catalogue().manifest(name)
    if manifest.engine is EngineKind.OPENAI:
        manifest = manifest.model_copy(update={"settings": {"answers": "auto", **manifest.settings}})
    return open_engine(manifest, clock)


def _step(prompt: Prompt) -> str:
    """Name a request that states no step by its prompt file."""
    return prompt.version.rpartition("-")[0]
