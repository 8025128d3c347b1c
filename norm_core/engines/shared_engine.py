"""One engine for several leases: urgent requests first, a bounded queue, and no caller hangs."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import contextmanager
from enum import IntEnum
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineError, EngineFailedError, PastDeadlineError
from norm_core.engines.request_context import Deadline
from norm_core.records.status import QueueStatus

R = TypeVar("R")

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
    """Run the requests of one engine's leases on its own thread. A full queue drops the oldest of the least urgent."""

    def __init__(self, engine: Engine, capacity: int = 8, name: str = "engine") -> None:
        """Start the engine's thread. Raises ValueError if `capacity` is below 1."""
        if capacity < 1:
            raise ValueError(f"an engine's queue needs room for at least one request, not {capacity}")
        self.engine, self._capacity, self._name = engine, capacity, name
        self._waiting: list[_Job[Any]] = []
        self._holds: list[Urgency] = []
        self._changed = Condition()
        self._closed = False
        self._received = self._dropped = 0
        self._worker = Thread(target=self._work, name=name, daemon=True)
        self._worker.start()

    def request(
        self, urgency: Urgency, deadline: Deadline, answer: Callable[[], R], decline: Callable[[EngineError], R]
    ) -> R:
        """Queue a request, and return its answer, or what `decline` makes of the fault that prevents one."""
        job = _Job(urgency, deadline, answer, decline)
        self._admit(job)
        return job.wait(self._worker.is_alive)

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
        self.engine.close()
        return True

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
