"""A part of a robot's load in a process of its own, as its node is in one."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from threading import Event
from typing import Any

from calibration.asked_process import AskedProcess, send_error
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from tactful_cli.calibrate.budget_parts import LoadPart

_PACE, _HALT = "pace", "halt"


@record
class PacedLoad:
    """What a part took at its live pace: each job in ms, and the cores that all took on average."""

    taken_ms: tuple[float, ...]
    cores: float


class PartProcess(AskedProcess):
    """Runs a part in a child process; a `LoadPart` itself."""

    def __init__(self, make: Callable[..., LoadPart], *arguments: object) -> None:
        """Make the part in the process; raise a TactfulError if it cannot be made."""
        super().__init__(make.__name__, _serve, make, arguments)
        attributes: dict[str, Any] = self.receive()
        self.name, self.cycle_s = attributes["name"], attributes["cycle_s"]
        self.due_s: Sequence[float] = attributes["due_s"]

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the part."""
        self.send((method, *arguments))
        return self.receive()

    def once(self) -> float:
        """Do the next job, and return how many ms it took."""
        return float(self.call("once"))

    def pace(self) -> None:
        """Begin to do jobs when they come in a live session."""
        self.send((_PACE,))

    def halt(self) -> PacedLoad:
        """End the jobs that were begun, and return what they took."""
        load: PacedLoad = self.call(_HALT)
        return load


@contextmanager
def running(parts: Sequence[PartProcess]) -> Iterator[None]:
    """Run parts at their live pace while the block runs."""
    for part in parts:
        part.pace()
    try:
        yield
    finally:
        for part in parts:
            part.halt()


def together(parts: Sequence[PartProcess], seconds: float) -> tuple[Mapping[str, Sequence[float]], float]:
    """Time all parts beside each other, each at its live pace; return ms by name, and the cores that they take."""
    for part in parts:
        part.pace()
    Event().wait(seconds)
    loads = {part.name: part.halt() for part in parts}
    return {name: load.taken_ms for name, load in loads.items()}, sum(load.cores for load in loads.values())


def _serve(make: Callable[..., LoadPart], arguments: Sequence[object], connection: Connection) -> None:
    try:
        part = make(*arguments)
    except TactfulError as error:
        send_error(connection, error)
        return
    connection.send({"name": part.name, "cycle_s": part.cycle_s, "due_s": tuple(part.due_s)})
    try:
        while True:
            method, *rest = connection.recv()
            connection.send(_paced(part, connection) if method == _PACE else getattr(part, method)(*rest))
    except TactfulError as error:
        send_error(connection, error)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # the parent has closed its end, or the user has ended both


def _paced(part: LoadPart, connection: Connection) -> PacedLoad:
    """Do jobs at their times until the parent says anything: it says halt."""
    began_s, used_s = time.monotonic(), time.process_time()
    taken_ms = []
    for at_s in _times(part, began_s):
        if connection.poll(max(0.0, at_s - time.monotonic())):
            break
        taken_ms.append(part.once())
    connection.recv()
    cores = (time.process_time() - used_s) / (time.monotonic() - began_s)
    return PacedLoad(taken_ms=tuple(taken_ms), cores=cores)


def _times(part: LoadPart, began_s: float) -> Iterator[float]:
    return (began_s + round_ * part.cycle_s + due_s for round_ in count() for due_s in part.due_s)
