"""`./tactful up`, or another verb that runs until Ctrl-C, as a child process with the lines that it prints."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Thread

import pytest

from tests.observer import Observer
from tests.patience import PATIENCE_S, ends_in_time

TACTFUL = (sys.executable, "-m", "tactful_cli")
UP = (*TACTFUL, "up")


class RunningUp:
    """A running `up` or other verb."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(
            [*TACTFUL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.PIPE
        )
        self.lines: list[str] = []
        self._has_ended = False
        self._changed = Condition()
        Thread(target=self._read, daemon=True).start()

    def wait_for(self, text: str, times: int = 1) -> str:
        """Wait until a text was printed so many times; return its last line."""

        def printed() -> list[str]:
            return [line for line in self.lines if text in line]

        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or len(printed()) >= times, PATIENCE_S)
            if len(printed()) < times:
                how = f"ended with {self._process.poll()}" if self._has_ended else "printed in vain"
                pytest.fail(f"{how}, without {text!r}: {self.lines}")
            return printed()[-1]

    def children(self) -> dict[int, str]:
        """The child processes with their command lines."""
        pid = self._process.pid
        pids = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        return {int(child): Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8") for child in pids}

    def pid_of(self, node: str) -> int:
        """The process that hosts a node."""
        return next(pid for pid, command in self.children().items() if f"\0{node}\0" in command)

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit code; fail where a child is left."""
        children = self.children()
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(PATIENCE_S)
        left = {command for pid, command in children.items() if not ends_in_time(pid)}
        assert left == set()
        return code

    def type(self, line: str) -> None:
        """Type a line into the terminal."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def wait(self) -> int:
        """Wait until it ends by itself; return the exit code."""
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Leave nothing behind after a failure: the nodes end with their parent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


@contextmanager
def running_up(log: Path, *arguments: str) -> Iterator[RunningUp]:
    """Run `up` for the duration of a with statement."""
    with running("up", *arguments, "--log", str(log)) as up:
        yield up


@contextmanager
def running(*arguments: str) -> Iterator[RunningUp]:
    """Run a verb for the duration of a with statement."""
    verb = RunningUp(arguments)
    try:
        yield verb
    finally:
        verb.kill()


def run_up(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an `up` that ends by itself."""
    return subprocess.run(
        [*UP, *arguments],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


Said = tuple[str, int, int, str]  # the speaker, seconds from and to, and words, or none for silence


def say(observer: Observer, topic: str, talk: Sequence[Said], readers: int, begin_ns: int) -> None:
    """Publish a talk that began at a time, once it is over and all who read it are there."""
    from norm_interfaces.msg import Utterance
    from rclpy.time import Time

    publisher = observer.node.create_publisher(Utterance, topic, 50)
    observer.until(lambda: publisher.get_subscription_count() >= readers, "everyone who reads the talk")
    observer.until(lambda: time.time_ns() > begin_ns + talk[-1][2] * 10**9, "the end of the talk")
    for number, (speaker, start_s, end_s, text) in enumerate(talk):
        start, end = (Time(nanoseconds=begin_ns + at_s * 10**9).to_msg() for at_s in (start_s, end_s))
        by, name = getattr(Utterance, f"SPEAKER_{speaker}"), f"{begin_ns}-{number}"
        message = Utterance(utterance_id=name, speaker=by, text=text, start=start, end=end, final=bool(text))
        message.header.stamp = start
        publisher.publish(message)
