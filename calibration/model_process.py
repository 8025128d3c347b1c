"""A model in a process of its own, so that its memory and its time are told from another's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from calibration.asked_process import AskedProcess, send_error
from norm_core.engines.engine_factory import open_engine_by_name
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.reply import ModelInfo, Scores
from norm_core.engines.request_context import Deadline
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock, s_to_ns

# A slow model is waited for as long as the judge's parameters permit.
_LONGEST_NS = s_to_ns(600)


@record
class TimedScores:
    """An answer, and how long the model took for it."""

    scores: Scores
    seconds: float


class ModelProcess(AskedProcess):
    """Asks a model of the catalogue that runs in a child process."""

    def __init__(self, name: str) -> None:
        """Load the model; raise a TactfulError if it cannot be loaded."""
        super().__init__(name, _serve, name)
        self.model_info: ModelInfo = self.receive()

    def ask(self, prompt: Prompt, question: Question) -> TimedScores:
        """Ask one question; raise a TactfulError if the process has ended."""
        self.send((prompt, question))
        timed: TimedScores = self.receive()
        return timed

    def peak_mb(self) -> float:
        """Return the most memory that the process took beyond that of its imports."""
        self.send(None)
        peak: float = self.receive()
        return peak


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
        send_error(connection, error)
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
