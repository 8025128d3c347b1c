"""One engine for several callers: urgent requests first, a bounded queue, and no caller hangs."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import contextmanager
from enum import IntEnum
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from norm_core.engines.engine import Engine
from norm_core.engines.engine_health import EngineHealth
from norm_core.engines.errors import EngineError, EngineFailedError, PastDeadlineError
from norm_core.engines.openai.circuit_breaker import ServerStatus
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.status import QueueStatus

R = TypeVar("R")
S = TypeVar("S", bound=BaseModel)

# How often a caller without a deadline checks that the engine is alive.
_LOOK_S = 0.5
# How long a caller waits past its deadline for the engine's own outcome.
_GRACE_S = 0.05


class Urgency(IntEnum):
    """Priority of a request. An action comes first, because a robot stands still for it."""

    ACTION = 0
    WINDOW = 1
    BACKGROUND = 2


class _Job(Generic[R]):
    def __init__(
        self, urgency: Urgency, deadline: Deadline, answer: Callable[[], R], decline: Callable[[EngineError], R]
    ) -> None:
        self.urgency, self.deadline, self._answer, self._decline = urgency, deadline, answer, decline
        self.reply: Future[R] = Future()

    def run(self) -> None:
        try:
            self.deadline.check()
        except PastDeadlineError as fault:
            self.give_up(fault)
        else:
            self.reply.set_result(self._answer())

    def give_up(self, fault: EngineError) -> None:
        self.reply.set_result(self._decline(fault))

    def wait(self, engine_lives: Callable[[], bool]) -> R:
        """Return the reply, or the fault of an engine that does not answer in time."""
        while True:
            remaining_s = self.deadline.remaining_s()
            try:
                return self.reply.result(_LOOK_S if remaining_s is None else remaining_s + _GRACE_S)
            except NotDone:
                if remaining_s is not None:
                    self.deadline.cancel()
                    return self._decline(PastDeadlineError("the engine did not come back before the deadline"))
                if not engine_lives():
                    return self._decline(EngineFailedError("the engine was closed"))


class SharedEngine:
    """Ask one engine on its own thread. A full queue drops the oldest of the least urgent requests."""

    def __init__(self, engine: Engine, capacity: int = 8, name: str = "engine") -> None:
        """Start the engine's thread. Raises ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"an engine's queue needs room for at least one request, not {capacity}")
        self._engine, self._capacity, self._name = engine, capacity, name
        self._waiting: list[_Job[Any]] = []
        self._holds: list[Urgency] = []
        self._changed = Condition()
        self._closed = False
        self._received = self._dropped = 0
        self._worker = Thread(target=self._work, name=name, daemon=True)
        self._worker.start()

    @property
    def model_info(self) -> ModelInfo:
        """The model's identity and limits."""
        return self._engine.model_info

    @property
    def server_status(self) -> ServerStatus | None:
        """Whether the model's server can be reached; None for a model in this process."""
        return self._engine.server_status

    @property
    def health(self) -> EngineHealth:
        """The problems and counters of the engine."""
        return self._engine.health

    def ask_many(
        self,
        prefix: Prompt,
        questions: Sequence[Question],
        deadline: Deadline | None = None,
        urgency: Urgency = Urgency.WINDOW,
    ) -> list[Scores]:
        """Queue a call of Engine.ask_many."""
        deadline = deadline or Deadline(self._engine.clock)
        return self._asked(
            urgency,
            deadline,
            lambda: self._engine.ask_many(prefix, questions, deadline),
            lambda fault: self._engine.decline(prefix, questions, fault, deadline),
        )

    def score(
        self,
        prompt: Prompt,
        options: Sequence[str],
        deadline: Deadline | None = None,
        urgency: Urgency = Urgency.WINDOW,
    ) -> Scores:
        """Queue a call of Engine.score."""
        return self.ask_many(prompt, [Question(parts=(), options=tuple(options))], deadline, urgency)[0]

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
        urgency: Urgency = Urgency.WINDOW,
    ) -> Generation[S]:
        """Queue a call of Engine.generate."""
        deadline = deadline or Deadline(self._engine.clock)
        return self._asked(
            urgency,
            deadline,
            lambda: self._engine.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=deadline),
            lambda fault: self._engine.decline_to_write(prompt, fault, deadline),
        )

    @contextmanager
    def hold(self, urgency: Urgency) -> Iterator[None]:
        """Hold back less urgent requests until the block ends, so that none runs between two of its own."""
        with self._changed:
            self._holds.append(urgency)
        try:
            yield
        finally:
            with self._changed:
                self._holds.remove(urgency)
                self._changed.notify()

    def status(self) -> QueueStatus:
        """Return the status of the request queue."""
        with self._changed:
            return QueueStatus(
                name=self._name,
                depth=len(self._waiting),
                capacity=self._capacity,
                received=self._received,
                dropped=self._dropped,
            )

    def close(self, timeout_s: float = 5.0) -> bool:
        """Decline waiting requests and release the model; return False if the model is stuck."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._worker.join(timeout_s)
        if self._worker.is_alive():
            return False
        self._engine.close()
        return True

    def _asked(
        self, urgency: Urgency, deadline: Deadline, answer: Callable[[], R], decline: Callable[[EngineError], R]
    ) -> R:
        job = _Job(urgency, deadline, answer, decline)
        self._admit(job)
        return job.wait(self._worker.is_alive)

    def _admit(self, job: _Job[Any]) -> None:
        with self._changed:
            self._received += 1
            if self._closed:
                job.give_up(EngineFailedError("the engine was closed"))
                return
            self._waiting.append(job)
            if len(self._waiting) > self._capacity:
                least = max(self._waiting, key=lambda waiting: waiting.urgency)  # the oldest on a tie
                self._waiting.remove(least)
                self._dropped += 1
                least.give_up(PastDeadlineError("gave way to other requests: the engine is asked more than it can"))
            self._changed.notify()

    def _work(self) -> None:
        while job := self._next():
            job.run()

    def _next(self) -> _Job[Any] | None:
        with self._changed:
            while not ((job := self._first()) or self._closed):
                self._changed.wait(_LOOK_S)
            if self._closed or job is None:
                for waiting in self._waiting:
                    waiting.give_up(EngineFailedError("the engine was closed"))
                self._waiting.clear()
                return None
            self._waiting.remove(job)
            return job

    def _first(self) -> _Job[Any] | None:
        """Return the most urgent request that is not held back, the oldest on a tie."""
        least = min(self._holds, default=max(Urgency))
        ready = [waiting for waiting in self._waiting if waiting.urgency <= least]
        return min(ready, key=lambda waiting: waiting.urgency, default=None)
