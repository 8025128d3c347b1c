"""One child process: its output and its end become events in a queue, and when it is started again."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue
from threading import Thread

from norm_core.records.record import record

LAST_LINES = 20
_COMPLAINT = "tactful: "  # what a host prints before the reason for its end


@record
class OutputLine:
    """A line that a process printed."""

    process: "ChildProcess"
    text: str


@record
class ProcessEnd:
    """A process ended; `code` is negative where a signal ended it."""

    process: "ChildProcess"
    code: int


Event = OutputLine | ProcessEnd


class ChildProcess:
    """A process in a session of its own, so that Ctrl-C in the terminal reaches its supervisor alone."""

    def __init__(
        self, name: str, module: str, arguments: Sequence[str], events: "Queue[Event]", *, stdin: bool | int
    ) -> None:
        """Name it. `stdin` says whether it reads what is typed, or is subprocess.PIPE for what write_line gives."""
        self.name, self._events = name, events
        self._command = [sys.executable, "-m", module, *arguments]
        self._stdin = stdin if stdin is subprocess.PIPE else None if stdin else subprocess.DEVNULL
        self._process: subprocess.Popen[str] | None = None
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self.launched_s = 0.0
        self.environment: Mapping[str, str] = {}  # beside that of this process

    @property
    def is_running(self) -> bool:
        """Whether the process was launched and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid if self._process else 0

    def launch(self) -> int:
        """Start the process; return the wall time just before, in nanoseconds."""
        launched_ns = time.time_ns()
        self.launched_s = time.monotonic()
        self._last.clear()
        free_dead_segments()
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            stdin=self._stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        Thread(target=self._read, args=(self._process,), daemon=True).start()
        return launched_ns

    def end(self, number: signal.Signals) -> None:
        """Send a signal, if the process runs."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(number)

    def write_line(self, text: str) -> None:
        """Write a line to the process. Raises OSError if it cannot be written."""
        if self._process is None or self._process.stdin is None:
            raise BrokenPipeError("the process does not run")
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def wait(self, until_s: float) -> bool:
        """Wait for the end until a monotonic time; return whether it came."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def complaint(self) -> str:
        """Return the reason that the process gave for its end, or its last line."""
        lines = [line for line in self._last if line.strip()]
        complaints = [line.removeprefix(_COMPLAINT) for line in lines if line.startswith(_COMPLAINT)]
        return (complaints or lines or ["it said nothing"])[-1]

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            self._last.append(line.rstrip("\n"))
            self._events.put(OutputLine(process=self, text=line.rstrip("\n")))
        self._events.put(ProcessEnd(process=self, code=process.wait()))


SHARED_MEMORY = Path("/dev/shm")
_LOCK = "_el"


def free_dead_segments(folder: Path = SHARED_MEMORY, *, idle_s: float = 60.0) -> int:
    """Remove what killed processes left in Fast DDS's shared memory, up to 17 MB each; return how many there were.

    Whoever uses a segment holds the lock of the file beside it.
    """
    freed = 0
    for lock in folder.glob(f"fastrtps_????????????????{_LOCK}"):
        with suppress(OSError), lock.open("rb") as file:  # another user's, or in use
            if time.time() - lock.stat().st_mtime > idle_s:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lock.with_name(lock.name.removesuffix(_LOCK)).unlink(missing_ok=True)
                lock.unlink()
                freed += 1
    return freed


DELAYS_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
FORGIVEN_AFTER_S = 60.0  # of running
BAD_INPUT_DELAY_S = 60.0  # a profile or a server may have been fixed by then


@record
class Backoff:
    """How often a process was started again, in all and without a long run in between."""

    restarts: int = 0
    in_a_row: int = 0

    def after(self, ran_s: float, *, bad_input: bool) -> tuple["Backoff", float]:
        """Return the count after one more end, and how long to wait."""
        in_a_row = 0 if ran_s >= FORGIVEN_AFTER_S else self.in_a_row
        delay_s = BAD_INPUT_DELAY_S if bad_input else DELAYS_S[min(in_a_row, len(DELAYS_S) - 1)]
        return Backoff(restarts=self.restarts + 1, in_a_row=in_a_row + 1), delay_s
