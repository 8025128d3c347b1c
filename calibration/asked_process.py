"""Work in a child process that is asked by messages, so that its memory and time are its own."""

from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from norm_core.runtime.errors import TactfulError

LONGEST_S = 900.0  # for one answer
_END_S = 30.0


class AskedProcess:
    """Sends messages to a function in a child process, and receives its answers."""

    def __init__(self, name: str, serve: Callable[..., None], *arguments: object) -> None:
        """Start the process; `serve` gets the arguments and the connection, and sends errors by `send_error`."""
        self.name = name
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(*arguments, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, message: object) -> None:
        """Send a message; raise a TactfulError if the process has ended."""
        try:
            self._connection.send(message)
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self) -> Any:
        """Receive an answer; raise the TactfulError that it is, or that says that none came."""
        try:
            if not self._connection.poll(LONGEST_S):
                raise TactfulError(f"{self.name}: gave no answer in {LONGEST_S:g} s; end what else runs, or take less")
            received = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._ended() from None
        if isinstance(received, TactfulError):
            raise received
        return received

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(_END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ended(self) -> TactfulError:
        self._process.join(_END_S)
        code = self._process.exitcode
        return TactfulError(f"{self.name}: its process ended with code {code}; -9 is a lack of memory: free some")


def send_error(connection: Connection, error: TactfulError) -> None:
    """Send an error as its base class: a subclass may not survive the way."""
    connection.send(TactfulError(str(error)))
