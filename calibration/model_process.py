"""A model in a process of its own, so that its memory and its time are told from another's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock, s_to_ns

# A slow model is waited for as long as the judge's parameters permit.
_LONGEST_NS = s_to_ns(600)
_END_S = 30.0


@record
class TimedScores:
    """An answer, and how long the model took for it."""

    scores: Scores
    seconds: float


class ModelProcess:
    """Asks a model of the catalogue that runs in a child process."""

    def __init__(self, name: str) -> None:
        """Load the model; raise a TactfulError if it cannot be loaded."""
        self.name = name
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.model_info: ModelInfo = self._receive()

    def ask(self, prompt: Prompt, question: Question) -> TimedScores:
        """Ask one question; raise a TactfulError if the process has ended."""
        try:
            self._connection.send((prompt, question))
        except BrokenPipeError:
            self._connection.close()
            raise self._ended() from None
        timed: TimedScores = self._receive()
        return timed

    def peak_mb(self) -> float:
        """Return the most memory that the process took beyond that of its imports."""
        self._connection.send(None)
        peak: float = self._receive()
        return peak

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _receive(self) -> Any:
        try:
            received = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._ended() from None
        if isinstance(received, TactfulError):
            raise received
        return received

    def _ended(self) -> TactfulError:
        self._process.join(_END_S)
        return TactfulError(
            f"{self.name}: its process ended with code {self._process.exitcode}; -9 is a lack of memory: free some, "
            "or compare smaller models"
        )


@contextmanager
def model_processes(names: tuple[str, str]) -> Iterator[tuple[ModelProcess, ModelProcess]]:
    """Run both models until the block ends."""
    first = ModelProcess(names[0])
    try:
        second = ModelProcess(names[1])
        try:
            yield first, second
        finally:
            second.close()
    finally:
        first.close()


def _serve(name: str, connection: Connection) -> None:
    clock, before_mb = WallClock(), _memory_mb("VmRSS")
    try:
        engine = open_engine_by_name(name, clock)
    except TactfulError as error:
        connection.send(TactfulError(str(error)))  # a subclass may not survive the way
        return
    connection.send(engine.model_info)
    try:
        while True:
            asked = connection.recv()
            if asked is None:
                connection.send(_memory_mb("VmHWM") - before_mb)
                continue
            prompt, question = asked
            started_s = time.perf_counter()
            (scores,) = engine.ask_many(prompt, [question], Deadline(clock, clock.now_ns() + _LONGEST_NS))
            connection.send(TimedScores(scores=scores, seconds=time.perf_counter() - started_s))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the parent has closed its end, or the user has ended both
    finally:
        engine.close()


def _memory_mb(counter: str) -> float:
    """Read a counter of this process alone; getrusage's peak would include that of the parent."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{counter}:"))) * 1.024e-3
