"""Read what the nodes of a running graph publish, from the process that has ROS."""

import importlib.util
import json
import signal
import time
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any, TypeVar

from norm_core.records.json_codec import from_json
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from tactful_cli.up.backoff import Backoff
from tactful_cli.up.process import ChildProcess, Event, ProcessEnd
from tactful_cli.up.profile import checked_namespace, node_namespace

T = TypeVar("T")

MODULE = "norm_nodes.graph_stream"
# Beyond it the process that has ROS must wait; it drops and counts.
EVENTS_QUEUE = 1000
END_TIMEOUT_S = 5.0


@record
class GraphLine:
    """One message of the graph: its kind, its topic, and its record as plain JSON."""

    kind: str
    topic: str
    stamp_ns: int | None = None
    arrival_ns: int
    record: dict[str, Any]

    def record_as(self, cls: type[T]) -> T:
        """Return the record; raise RecordError if it is of another type."""
        return from_json(cls, json.dumps(self.record))


class GraphStream:
    """The lines of one namespace. A process that ends is started again, as `up` does."""

    def __init__(self, namespace: str, verb: str, log: Callable[[str], None], *, frames: bool = False) -> None:
        """Raises TactfulError if the nodes are not installed, or if the namespace is none."""
        if importlib.util.find_spec("norm_nodes") is None:
            raise TactfulError(f"{verb}: the nodes are not installed; run it in a checkout, or source your workspace")
        self.namespace = node_namespace(checked_namespace(namespace, verb))
        self._log = log
        self._events: Queue[Event] = Queue(EVENTS_QUEUE)
        arguments = [self.namespace, *(["--frames"] if frames else [])]
        self._process = ChildProcess("stream", MODULE, arguments, self._events, stdin=False)
        self._backoff, self._due_s = Backoff(), time.monotonic()

    def get(self, timeout_s: float) -> GraphLine | None:
        """Return the next line; None on a timeout, or for what is no line."""
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
        return parse_line(event.text)

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
