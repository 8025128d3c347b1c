"""Share one engine per model: urgent requests first, a bounded queue, and no wait after the deadline."""

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

# The pause between two checks whether the engine is alive, for callers without a deadline.
_CHECK_PAUSE_S = 0.5
# The time after the deadline in which the engine may still answer.
_GRACE_S = 0.05

_log = logging.getLogger(__name__)


class Urgency(IntEnum):
    """The priority of a request. An action comes first, because the robot waits for it."""

    ACTION = 0
    WINDOW = 1
    BACKGROUND = 2


class _QueuedRequest(Generic[R]):
    """A request, with the functions that answer it and that decline it."""

    def __init__(
        self, urgency: Urgency, deadline: Deadline, answer: Callable[[], R], decline: Callable[[EngineError], R]
    ) -> None:
        self.urgency = urgency
        self.deadline = deadline
        self._answer = answer
        self._decline = decline
        self.reply: Future[R] = Future()

    def run(self) -> None:
        """Answer the request, unless its deadline has passed."""
        try:
            self.deadline.check()
        except PastDeadlineError as fault:
            self.decline(fault)
        else:
            self.reply.set_result(self._answer())

    def decline(self, fault: EngineError) -> None:
        """Set the declined answer as the reply."""
        self.reply.set_result(self._decline(fault))

    def wait(self, is_engine_alive: Callable[[], bool]) -> R:
        """Return the reply, or a declined one if the engine does not answer in time."""
        while True:
            remaining_s = self.deadline.remaining_s()
            try:
                return self.reply.result(_CHECK_PAUSE_S if remaining_s is None else remaining_s + _GRACE_S)
            except NotDone:
                if remaining_s is not None:
                    self.deadline.cancel()
                    return self._decline(PastDeadlineError("the engine did not come back before the deadline"))
                if not is_engine_alive():
                    return self._decline(EngineFailedError("the engine was closed"))


class SharedEngine:
    """A thread that runs the requests of all leases of an engine.

    A full queue drops the oldest of the least urgent requests.
    """

    def __init__(self, engine: DirectEngine, capacity: int = 8, name: str = "engine") -> None:
        """Start the thread. Raises ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"an engine's queue needs room for at least one request, not {capacity}")
        self.engine = engine
        self._capacity = capacity
        self._name = name
        self._waiting: list[_QueuedRequest[Any]] = []
        self._held_urgencies: list[Urgency] = []
        self._changed = Condition()
        self._is_closed = False
        self._received_count = 0
        self._dropped_count = 0
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
        """Hold back less urgent requests until the block ends, so that none runs between its requests."""
        with self._changed:
            self._held_urgencies.append(urgency)
        try:
            yield
        finally:
            with self._changed:
                self._held_urgencies.remove(urgency)
                self._changed.notify()

    def status(self) -> QueueStatus:
        """Return the status of the request queue."""
        with self._changed:
            return QueueStatus(
                name=self._name,
                depth=len(self._waiting),
                capacity=self._capacity,
                received=self._received_count,
                dropped=self._dropped_count,
            )

    def close(self, timeout_s: float = 5.0) -> bool:
        """Decline the waiting requests and release the model; return whether that succeeded in time."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._worker.join(timeout_s)
        if self._worker.is_alive():
            return False
        self.engine.close()
        return True

    def _admit(self, request: _QueuedRequest[Any]) -> None:
        with self._changed:
            self._received_count += 1
            if self._is_closed:
                request.decline(EngineFailedError("the engine was closed"))
                return
            self._waiting.append(request)
            if len(self._waiting) > self._capacity:
                dropped = max(self._waiting, key=lambda waiting: waiting.urgency)  # On a tie, max returns the oldest.
                self._waiting.remove(dropped)
                self._dropped_count += 1
                dropped.decline(
                    PastDeadlineError(
                        "gave way to other requests: the engine gets more requests than it can answer; ask less often"
                    )
                )
            self._changed.notify()

    def _work(self) -> None:
        while request := self._wait_for_request():
            request.run()

    def _wait_for_request(self) -> _QueuedRequest[Any] | None:
        """Return the next request to run; None once the engine is closed."""
        with self._changed:
            while not ((request := self._find_first()) or self._is_closed):
                self._changed.wait(_CHECK_PAUSE_S)
            if self._is_closed or request is None:
                for waiting in self._waiting:
                    waiting.decline(EngineFailedError("the engine was closed"))
                self._waiting.clear()
                return None
            self._waiting.remove(request)
            return request

    def _find_first(self) -> _QueuedRequest[Any] | None:
        """Return the most urgent request that is not held back, the oldest on a tie."""
        max_urgency = min(self._held_urgencies, default=max(Urgency))
        ready = [waiting for waiting in self._waiting if waiting.urgency <= max_urgency]
        return min(ready, key=lambda waiting: waiting.urgency, default=None)


class EngineLease:
    """A shared engine for one user, whose requests have one urgency."""

    def __init__(
        self,
        shared: SharedEngine,
        urgency: Urgency = Urgency.WINDOW,
        give_back: Callable[["EngineLease"], object] | None = None,
    ) -> None:
        """Lease the engine until `close`, which calls `give_back`."""
        self._shared = shared
        self._engine = shared.engine
        self._urgency = urgency
        self._give_back = give_back

    @property
    def model_info(self) -> ModelInfo:
        """The identity and limits of the model."""
        return self._engine.model_info

    @property
    def server_status(self) -> ServerStatus | None:
        """Whether the server of the model can be reached; None for a model in this process."""
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
        """Hold back less urgent requests until the block ends."""
        return self._shared.hold(self._urgency)

    def status(self) -> QueueStatus:
        """Return the status of the request queue of all users."""
        return self._shared.status()

    def close(self) -> None:
        """Return the engine to the pool; a second call does nothing."""
        if self._give_back:
            self._give_back(self)


class EnginePool:
    """Shared engines by the name of the manifest; any thread may lease and close."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._engines: dict[str, SharedEngine] = {}
        self._leases: dict[str, set[EngineLease]] = {}
        # Locked while a model loads or closes, because two models may not fit into memory.
        self._lock = Lock()

    def lease(self, name: str, urgency: Urgency) -> EngineLease:
        """Return a lease of the engine of a model, which the first lease opens.

        Raises a TactfulError if the engine cannot be opened.
        """
        with self._lock:
            if name not in self._engines:
                engine = open_engine(Catalogue().read_manifest(name), self._clock)
                self._engines[name] = SharedEngine(engine, name=f"engine_{name}")
            lease = EngineLease(self._engines[name], urgency, lambda lease: self._close_lease(name, lease))
            self._leases.setdefault(name, set()).add(lease)
            return lease

    def _close_lease(self, name: str, lease: EngineLease) -> None:
        with self._lock:
            leases = self._leases.get(name, set())
            if lease not in leases:
                return
            leases.remove(lease)
            if not leases and not self._engines.pop(name).close():
                _log.warning(
                    "engine %s: the model does not respond, so its memory stays in use; restart the process", name
                )
