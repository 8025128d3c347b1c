"""Read what the nodes of a running graph publish, from the process that has ROS."""

import importlib.util
import json
import signal
import subprocess
import time
from collections.abc import Callable
from queue import Empty, Queue
from threading import Lock
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import from_plain
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from tactful_cli.up.process import Backoff, ChildProcess, Event, ProcessEnd
from tactful_cli.up.profile import checked_namespace, node_namespace

MODULE = "norm_nodes.tools.graph_printer"
RECORDS: dict[str, type] = {
    "status": MonitorStatus,
    "utterance": Utterance,
    "robot_speech": RobotSpeech,
    "presence": Presence,
    "flag": SocialFlag,
    "decision": Decision,
    "frame": Frame,
}
# Beyond it the process that has ROS must wait; it drops and counts.
EVENTS_QUEUE = 1000
END_TIMEOUT_S = 5.0
REPLY_TIMEOUT_S = 5.0


@record
class GraphLine:
    """One message of the graph: its kind, its topic, and its record as plain JSON."""

    kind: str
    topic: str
    stamp_ns: int | None = None
    arrival_ns: int
    record: dict[str, Any]

    def read(self) -> Any:
        """Return the record of the line's kind, or None if it holds none; raise RecordError if it is not one."""
        cls = RECORDS.get(self.kind)
        return from_plain(cls, self.record) if cls else None


class GraphStream:
    """The lines of one namespace. A process that ends is started again, as `up` does."""

    def __init__(
        self,
        namespace: str,
        verb: str,
        log: Callable[[str], None],
        *,
        frames: bool = False,
        commands: bool = False,
    ) -> None:
        """Raises TactfulError if the nodes are not installed, or if the namespace is none."""
        if importlib.util.find_spec("norm_nodes") is None:
            raise TactfulError(f"{verb}: the nodes are not installed; run it in a checkout, or source your workspace")
        self.namespace = node_namespace(checked_namespace(namespace, verb))
        self._log = log
        self._events: Queue[Event] = Queue(EVENTS_QUEUE)
        arguments = [self.namespace, *(["--frames"] if frames else []), *(["--commands"] if commands else [])]
        stdin = subprocess.PIPE if commands else False
        self._process = ChildProcess("stream", MODULE, arguments, self._events, stdin=stdin)
        self._replies: dict[int, Queue[dict[str, Any]]] = {}
        self._last_id, self._sending = 0, Lock()
        self._backoff, self._due_s = Backoff(), time.monotonic()

    def get(self, timeout_s: float) -> GraphLine | None:
        """Return the next line; None on a timeout, or for anything else."""
        if self._due_s and time.monotonic() >= self._due_s:
            self._process.launch()
            self._due_s = 0.0
        try:
            event = self._events.get(timeout=timeout_s)
        except Empty:
            return None
        if isinstance(event, ProcessEnd):
            self._take_end(event.code)
            return None
        line = parse_line(event.text)
        if line and line.kind == "reply":
            waiting = self._replies.pop(int(line.record["id"]), None)
            if waiting:
                waiting.put(line.record)
        return line

    def send(self, command: dict[str, Any], waiting: "Queue[dict[str, Any]] | None" = None) -> int:
        """Send a command and return its number; `get` returns the reply. Raises OSError where no process reads it."""
        with self._sending:
            self._last_id += 1
            if waiting:
                self._replies[self._last_id] = waiting
            self._process.write_line(json.dumps({**command, "id": self._last_id}))
            return self._last_id

    def ask(self, command: dict[str, Any]) -> str:
        """Send a command, while another thread reads the lines; return why it was not done, or nothing."""
        return str(self.reply_to(command)["problem"])

    def reply_to(self, command: dict[str, Any], timeout_s: float = REPLY_TIMEOUT_S) -> dict[str, Any]:
        """Send a command, while another thread reads the lines; return its reply."""
        waiting: Queue[dict[str, Any]] = Queue(1)
        try:
            number = self.send(command, waiting)
        except OSError:
            return {"problem": "the ROS process does not run; wait until it starts again"}
        try:
            return waiting.get(timeout=timeout_s)
        except Empty:
            self._replies.pop(number, None)
            return {"problem": f"no node answers within {timeout_s:.0f} s; see its health, and try again"}

    def close(self) -> None:
        """End the process."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.end(number)
            if self._process.wait(time.monotonic() + END_TIMEOUT_S):
                return

    def _take_end(self, code: int) -> None:
        ran_s = time.monotonic() - self._process.launched_s
        self._backoff, delay_s = self._backoff.after(ran_s, bad_input=False)
        self._due_s = time.monotonic() + delay_s
        complaint = self._process.complaint()
        why = f"exit code {code}" if parse_line(complaint) else complaint
        self._log(f"the ROS process ended: {why}; it starts again in {delay_s:.0f} s")


def parse_line(text: str) -> GraphLine | None:
    """Return the line that a text is; None for a log message of ROS."""
    try:
        return GraphLine(**json.loads(text))
    except (ValueError, TypeError):
        return None
