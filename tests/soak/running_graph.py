"""The nodes of `up` on a ROS domain of their own, a robot that goes wrong on command, and what both publish."""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from norm_core.health.node_watch import read_usage
from norm_core.records.status import MonitorStatus, NodeState
from norm_monitor.session_log.reader import read
from tactful_cli.graph_stream import GraphLine, GraphStream
from tactful_cli.up.process import ChildProcess, Event, OutputLine, ProcessEnd

STUDY = "study"  # folder of the log
START_S, END_S, POLL_S = 240.0, 40.0, 0.05
# As records of one kind are told apart in the log.
IDENTITY: Mapping[str, Callable[[Any], tuple[str, ...]]] = {
    "flag": lambda record: (record.event_id, record.state),
    "utterance": lambda record: (record.utterance_id,),
    "robot_speech": lambda record: (record.speech_id, record.state),
}

Heard = tuple[float, GraphLine]  # with the monotonic time of its arrival


class RunningGraph:
    """Run `up` with a profile for the duration of a with statement. The ROS domain is the environment's."""

    def __init__(
        self,
        folder: Path,
        profile: Mapping[str, Mapping[str, Any]],
        robot: Mapping[str, Any] = {},
    ) -> None:
        """`robot` is what the robot does from its start on."""
        self.folder = folder
        self.nodes = tuple(profile)
        self._robot_state = robot
        self._profile = folder / "profile.yaml"
        tree = {f"/tactful/{node}": {"ros__parameters": parameters} for node, parameters in profile.items()}
        self._profile.write_text(json.dumps(tree), encoding="utf-8")
        self._events: Queue[Event] = Queue()
        arguments = ["up", str(self._profile), "--log", str(folder / "up.log")]
        self._up = ChildProcess("up", "tactful_cli", arguments, self._events, stdin=False)
        self._robot = ChildProcess("robot", "tests.soak.faulty_robot", [], self._events, stdin=-1)
        self._stream: GraphStream | None = None
        self._output: list[tuple[float, str]] = []
        self._messages: list[Heard] = []
        self._statuses: dict[str, tuple[float, MonitorStatus]] = {}
        self._ends = False

    def __enter__(self) -> Self:
        """Start everything. Raises TimeoutError, with the last lines of `up`, if the nodes do not become active."""
        try:
            self._stream = GraphStream("", "soak", lambda line: None)
            Thread(target=self._listen, args=(self._stream,), daemon=True).start()
            self._robot.launch()
            self.tell_robot(**self._robot_state)
            self._up.launch()
            if self.until(lambda: self.has_printed("all nodes are active"), START_S) is None:
                raise TimeoutError("; ".join(self.printed()[-5:]))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self._kill()

    def tell_robot(self, **command: Any) -> None:
        """Change what the robot does."""
        self._robot.write_line(json.dumps(command))

    def until(self, condition: Callable[[], object], timeout_s: float) -> float | None:
        """Wait for a condition; return how many seconds it took, or None if it did not come."""
        began_s = time.monotonic()
        while time.monotonic() < began_s + timeout_s:
            while True:
                try:
                    event = self._events.get_nowait()
                except Empty:
                    break
                if isinstance(event, OutputLine) and event.process is self._up:
                    self._output.append((time.monotonic(), event.text))
                elif isinstance(event, ProcessEnd) and event.process is self._robot and not self._ends:
                    raise RuntimeError(f"the robot of this trial ended: {self._robot.complaint()}")
            if condition():
                return time.monotonic() - began_s
            time.sleep(POLL_S)
        return None

    def printed(self, since_s: float = 0.0) -> list[str]:
        """List what `up` printed since a monotonic time."""
        return [text for at_s, text in self._output if at_s >= since_s]

    def has_printed(self, text: str) -> bool:
        """Whether `up` printed a text."""
        return any(text in line for line in self.printed())

    def heard(self, kind: str, since_s: float = 0.0) -> list[Heard]:
        """List the messages of a kind since a monotonic time."""
        return [message for message in list(self._messages) if message[1].kind == kind and message[0] >= since_s]

    def take_messages(self) -> list[Heard]:
        """Return the messages since the last call, and keep them no longer."""
        messages, self._messages = self._messages, []
        return messages

    def reasons(self, since_s: float) -> list[str]:
        """List the reasons of every heartbeat since a monotonic time, the newest of each node."""
        return [text for at_s, status in list(self._statuses.values()) if at_s >= since_s for text in status.reasons]

    def are_active(self, since_s: float) -> bool:
        """Whether every node sent a heartbeat as active since a monotonic time."""
        newest = dict(self._statuses)
        return all(
            node in newest and newest[node][0] >= since_s and newest[node][1].state is NodeState.ACTIVE
            for node in self.nodes
        )

    def pids(self) -> dict[str, int]:
        """Return the processes that host nodes, by node."""
        pid = self._up.pid
        hosts: dict[str, int] = {}
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
            try:
                words = Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
            except OSError:
                continue  # it has ended
            hosts |= {node: int(child) for node in self.nodes if "norm_nodes.node_host" in words and node in words}
        return hosts

    def memory_mb(self) -> float:
        """Return the memory of all hosts together."""
        usages = [read_usage(pid) for pid in set(self.pids().values())]
        return sum(usage.memory_kb for usage in usages if usage) / 1024

    def end(self) -> bool:
        """Press Ctrl-C; return whether all nodes ended, in time and well."""
        self._ends = True
        self._up.end(signal.SIGINT)
        ended = self._up.wait(time.monotonic() + END_S)
        self.until(lambda: self.has_printed("all nodes have ended"), 1.0)
        return ended and self.has_printed("all nodes have ended")

    def lost(self, without: tuple[float, float], since_s: float) -> list[str]:
        """List what was published since a monotonic time and is not in the study log, which must be sound.

        A flag is written before it is published, so each must be there. Of the rest, what came while the monitor may
        have been away is left out: the monotonic times `without`.
        """
        contents = read(self.folder / STUDY)
        logged = {
            (kind, *identity(entry.record))
            for entry in contents.entries
            for kind, identity in IDENTITY.items()
            if entry.kind.value == kind and entry.record is not None
        }
        lost = [f"{fault.file}:{fault.line} {fault.what}" for fault in contents.faults if not fault.harmless]
        for kind, identity in IDENTITY.items():
            for at_s, line in self.heard(kind, since_s):
                was_away = kind != "flag" and without[0] - 1.0 <= at_s <= without[1]
                record = line.read()
                is_partial = kind == "utterance" and not (record.final and record.text)
                if not (was_away or is_partial or (kind, *identity(record)) in logged):
                    lost.append(f"{kind} {' '.join(identity(record))}")
        return lost

    def _listen(self, stream: GraphStream) -> None:
        while not self._ends:
            line = stream.get(POLL_S * 4)
            if line is None:
                continue
            at_s = time.monotonic()
            if line.kind == "status":
                status = line.read()
                self._statuses[status.node.rpartition("/")[2]] = at_s, status
            else:
                self._messages.append((at_s, line))

    def _kill(self) -> None:
        self._ends = True
        for pid in self.pids().values() if self._up.is_running else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._up.end(signal.SIGINT)
        if not self._up.wait(time.monotonic() + END_S):
            self._up.end(signal.SIGKILL)
        self._robot.end(signal.SIGKILL)
        if self._stream:
            self._stream.close()
