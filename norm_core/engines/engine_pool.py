"""Share one engine per model: urgent requests first, a bounded queue, and no caller waits past its deadline."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from threading import Condition, Lock, Thread
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import EngineHealth, ServerStatus
from norm_core.engines.engine_factory import open_engine
from norm_core.engines.errors import EngineError, EngineFailedError, PastDeadlineError
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.models.catalogue import Catalogue
from norm_core.records.status import QueueStatus
from norm_core.runtime.time import Clock

R = TypeVar("R")
S = TypeVar("S", bound=BaseModel)


# How often a caller without a deadline checks that the engine is alive.
_LOOK_S = 0.5
# How long a caller waits past its deadline for the engine's own outcome.
_GRACE_S = 0.05

_log = logging.getLogger(__name__)


class Urgency(IntEnum):
    """Priority of a request. An action comes first, because the robot waits for it."""

    ACTION = 0
    WINDOW = 1
    BACKGROUND = 2


class _QueuedRequest(Generic[R]):
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
        """Return the reply, or a declined one if the engine does not answer in time."""
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
    """A thread that runs the requests of one engine's leases. A full queue drops the oldest of the least urgent."""

    def __init__(self, engine: DirectEngine, capacity: int = 8, name: str = "engine") -> None:
        """Start the engine's thread. Raises ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"an engine's queue needs room for at least one request, not {capacity}")
        self.engine, self._capacity, self._name = engine, capacity, name
        self._waiting: list[_QueuedRequest[Any]] = []
        self._holds: list[Urgency] = []
        self._changed = Condition()
        self._closed = False
        self._received = self._dropped = 0
        self._worker = Thread(target=self._work, name=name, daemon=True)
        self._worker.start()

    def request(
        self, urgency: Urgency, deadline: Deadline, answer: Callable[[], R], decline: Callable[[EngineError], R]
    ) -> R:
        """Queue a request, and return its answer; after a fault, return the result of `decline`."""
        request = _QueuedRequest(urgency, deadline, answer, decline)
        self._admit(request)
        return request.wait(self._worker.is_alive)

    @contextmanager
    def hold(self, urgency: Urgency) -> Iterator[None]:
        """Hold back less urgent requests until the block ends, so that none runs between two requests of the block."""
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
        self.engine.close()
        return True

    def _admit(self, request: _QueuedRequest[Any]) -> None:
        with self._changed:
            self._received += 1
            if self._closed:
                request.give_up(EngineFailedError("the engine was closed"))
                return
            self._waiting.append(request)
            if len(self._waiting) > self._capacity:
                dropped = max(self._waiting, key=lambda waiting: waiting.urgency)  # the oldest on a tie
                self._waiting.remove(dropped)
                self._dropped += 1
                dropped.give_up(PastDeadlineError("gave way to other requests: the engine is asked more than it can"))
            self._changed.notify()

    def _work(self) -> None:
        while request := self._next():
            request.run()

    def _next(self) -> _QueuedRequest[Any] | None:
        with self._changed:
            while not ((request := self._first()) or self._closed):
                self._changed.wait(_LOOK_S)
            if self._closed or request is None:
                for waiting in self._waiting:
                    waiting.give_up(EngineFailedError("the engine was closed"))
                self._waiting.clear()
                return None
            self._waiting.remove(request)
            return request

    def _first(self) -> _QueuedRequest[Any] | None:
        """Return the most urgent request that is not held back, the oldest on a tie."""
        limit = min(self._holds, default=max(Urgency))
        ready = [waiting for waiting in self._waiting if waiting.urgency <= limit]
        return min(ready, key=lambda waiting: waiting.urgency, default=None)


class EngineLease:
    """A shared engine, asked with one urgency until `close`."""

    def __init__(
        self,
        shared: SharedEngine,
        urgency: Urgency = Urgency.WINDOW,
        give_back: Callable[["EngineLease"], object] | None = None,
    ) -> None:
        """Lease the engine until `close`, which calls `give_back`."""
        self._shared, self._engine, self._urgency, self._give_back = shared, shared.engine, urgency, give_back

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

    def ask_many(self, prefix: Prompt, questions: Sequence[Question], deadline: Deadline | None = None) -> list[Scores]:
        """Queue a call of DirectEngine.ask_many."""
        deadline = deadline or Deadline(self._engine.clock)
        return self._shared.request(
            self._urgency,
            deadline,
            lambda: self._engine.ask_many(prefix, questions, deadline),
            lambda fault: self._engine.decline(prefix, questions, fault, deadline),
        )

    def generate(
        self,
        prompt: Prompt,
        schema: type[S] | None = None,
        *,
        max_tokens: int = 256,
        seed: int = 0,
        deadline: Deadline | None = None,
    ) -> Generation[S]:
        """Queue a call of DirectEngine.generate."""
        deadline = deadline or Deadline(self._engine.clock)
        return self._shared.request(
            self._urgency,
            deadline,
            lambda: self._engine.generate(prompt, schema, max_tokens=max_tokens, seed=seed, deadline=deadline),
            lambda fault: self._engine.decline_to_write(prompt, fault, deadline),
        )

    def hold(self) -> AbstractContextManager[None]:
        """Let less urgent requests wait until the block ends."""
        return self._shared.hold(self._urgency)

    def status(self) -> QueueStatus:
        """Return the queue status of the shared engine, over all its users."""
        return self._shared.status()

    def close(self) -> None:
        """Return the engine to the pool; a second call does nothing."""
        if self._give_back:
            self._give_back(self)


class EnginePool:
    """Shared engines by manifest name; any thread may lease and close."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._engines: dict[str, SharedEngine] = {}
        self._leases: dict[str, set[EngineLease]] = {}
        # Locked while a model loads or closes, because memory may not hold two models.
        self._lock = Lock()

    def lease(self, name: str, urgency: Urgency) -> EngineLease:
        """Return a lease of a model's engine. The first lease opens it; raise a TactfulError if that fails."""
        with self._lock:
            if name not in self._engines:
                engine = open_engine(Catalogue().manifest(name), self._clock)
                self._engines[name] = SharedEngine(engine, name=f"engine_{name}")
            lease = EngineLease(self._engines[name], urgency, lambda lease: self._take_back(name, lease))
            self._leases.setdefault(name, set()).add(lease)
            return lease

    def _take_back(self, name: str, lease: EngineLease) -> None:
        with self._lock:
            leases = self._leases.get(name, set())
            if lease not in leases:
                return
            leases.remove(lease)
            if not leases and not self._engines.pop(name).close():
                _log.warning("engine %s: the model hangs, so its memory is lost; restart the process", name)
