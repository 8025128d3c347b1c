"""Start node processes on a ROS domain of their own, wait for their nodes, and end them cleanly."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import yaml

from norm_core.files.data_files import shipped_file
from norm_core.runtime.errors import TactfulError

# Below 102, a domain's ports stay outside the range of ephemeral ports of Linux.
DOMAINS = range(50, 102)

# Settings of discovery speed and of data in flight.
MIDDLEWARE = shipped_file("norm_monitor.replay", "middleware.xml")
# The first name is for Fast DDS 2, the second for Fast DDS 3.
_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")

HOST = ("-m", "norm_bench.replay_host")
# Guards against hangs. They are long, because several processes may start on a busy machine.
START_TIMEOUT_S = 300.0
END_TIMEOUT_S = 30.0


class NoDomainError(TactfulError):
    """Every reserved domain is in use."""


@contextmanager
def claim_domain() -> Iterator[int]:
    """Reserve a domain with a lock that ends with the process.

    Nodes started inside discover each other fast, and no other machine. Fast DDS profiles of the user stay in force.
    """
    with _set_fast_discovery():
        yield from _lock_domain()


def _lock_domain() -> Iterator[int]:
    """Yield a domain while its lock is held. Raises NoDomainError if every domain is in use."""
    # The domain that was left the longest ago comes first, because nodes of a killed run take a moment to end.
    paths = [(domain, Path(tempfile.gettempdir(), f"tactful-domain-{domain}.lock")) for domain in DOMAINS]
    for domain, path in sorted(paths, key=lambda pair: pair[1].stat().st_mtime if pair[1].exists() else 0.0):
        # Reading suffices: another user may have made the file, and let nobody else write.
        with path.open("r" if path.exists() else "a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            try:
                yield domain
            finally:
                with suppress(OSError):  # of another user
                    os.utime(path)
            return
    raise NoDomainError(f"the ROS domains {DOMAINS.start} to {DOMAINS.stop - 1} are all in use: end another run")


def has_room() -> bool:
    """Whether megabytes may be in flight at a time, as the profile of a reserved domain allows."""
    return os.environ.get(_PROFILES[0]) == str(MIDDLEWARE)


@contextmanager
def _set_fast_discovery() -> Iterator[None]:
    if any(name in os.environ for name in _PROFILES):
        yield
        return
    os.environ.update(dict.fromkeys(_PROFILES, str(MIDDLEWARE)))
    try:
        yield
    finally:
        for name in _PROFILES:
            os.environ.pop(name, None)


def end_process(process: subprocess.Popen[Any], within_s: float, end_signal: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal to a running process, and kill it if it has not ended after `within_s` seconds."""
    if process.poll() is None:
        process.send_signal(end_signal)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class NodeProcessError(TactfulError, RuntimeError):
    """A node process did not start or failed; the message includes its output."""

    exit_code = 1


class _DumperWithoutAliases(yaml.SafeDumper):
    """Write repeated values in full, because ROS reads no YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class NodeProcess:
    """One host process with active nodes, for the duration of a with statement."""

    def __init__(
        self,
        nodes: Sequence[str],
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        domain_id: int | None = None,
        options: Sequence[str] = ("--autostart",),
        *,
        start_timeout_s: float = START_TIMEOUT_S,
        program: Sequence[str] = HOST,
    ) -> None:
        self.nodes, self._start_timeout_s = tuple(nodes), start_timeout_s
        self._folder = tempfile.TemporaryDirectory(prefix="tactful-")
        command = [sys.executable, *program, *nodes, *options, f"--parent={os.getpid()}"]
        command += ["--ros-args"]
        if parameters:
            path = Path(self._folder.name, "parameters.yaml")
            tree = {f"/tactful/{node}": {"ros__parameters": dict(values)} for node, values in parameters.items()}
            path.write_text(yaml.dump(tree, Dumper=_DumperWithoutAliases), encoding="utf-8")
            command += ["--params-file", str(path)]
        self._command = command
        self._environment = dict(os.environ) if domain_id is None else {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
        self._reported, self._started = Event(), False
        self.ended = Event()
        self.output: list[str] = []

    def begin(self) -> None:
        """Start the process without waiting, so that several start in parallel. Then call await_start."""
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def await_start(self) -> None:
        """Wait until the nodes are active."""
        if not self._reported.wait(self._start_timeout_s) or not self._started:
            self._end(signal.SIGKILL)
            raise NodeProcessError(f"{', '.join(self.nodes)} did not start: {self.last_output()}")

    def __enter__(self) -> Self:
        """Start the process and wait until its nodes are active. Raises NodeProcessError if they are not in time."""
        self.begin()
        self.await_start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process. Raises NodeProcessError if it fails and the block did not."""
        self._end(signal.SIGTERM)
        if kind is None and self._process.returncode != 0:
            raise NodeProcessError(
                f"{', '.join(self.nodes)} ended with {self._process.returncode}: {self.last_output()}"
            )

    @property
    def pid(self) -> int:
        """The id of the host process."""
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the host process has not ended."""
        return self._process.poll() is None

    def wait(self, timeout_s: float) -> int:
        """Wait for the process to end by itself. Returns its exit code; raises NodeProcessError after the timeout."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise NodeProcessError(f"{', '.join(self.nodes)} did not end in {timeout_s:g} s") from error

    def describe_exit(self) -> str:
        """Describe, for a person, whether the process runs or how it ended."""
        code = self._process.poll()
        return f"the process of {', '.join(self.nodes)} {'runs' if code is None else f'ended with {code}'}"

    def last_output(self) -> str:
        """Return the output of the process, for a person."""
        return "\n".join(self.output[-20:]).strip() or "it said nothing"

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.output.append(line.rstrip("\n"))
            if line.startswith(("running ", "waiting ")):
                self._started = True
                self._reported.set()
        self.ended.set()
        self._reported.set()  # no more output will come

    def _end(self, end_signal: signal.Signals) -> None:
        end_process(self._process, END_TIMEOUT_S, end_signal)
        self._listener.join()
        self._folder.cleanup()
