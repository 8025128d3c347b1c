"""Share one engine per model between all its users; close it after the last lease."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import TypeVar

from pydantic import BaseModel

from norm_core.engines.backend import EngineHealth, ServerStatus
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import Generation, ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.engines.shared_engine import SharedEngine, Urgency
from norm_core.records.status import QueueStatus
from norm_core.runtime.time import Clock

S = TypeVar("S", bound=BaseModel)

_log = logging.getLogger(__name__)


class EngineLease:
    """A shared engine, asked with one urgency until `close`."""

    def __init__(
        self,
        shared: SharedEngine,
        urgency: Urgency = Urgency.WINDOW,
        give_back: Callable[["EngineLease"], object] | None = None,
    ) -> None:
        """`give_back` is told of the end of the lease."""
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
        """Queue a call of Engine.ask_many."""
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
        """Queue a call of Engine.generate."""
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
        # Held while a model loads or closes, because memory may not hold two models.
        self._lock = Lock()

    def lease(self, name: str, urgency: Urgency) -> EngineLease:
        """Return a lease of a model's engine. The first lease opens it; raise a TactfulError if that fails."""
        with self._lock:
            if name not in self._engines:
                self._engines[name] = SharedEngine(open_engine_by_name(name, self._clock), name=f"engine_{name}")
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
