"""Print every message of Tactful's topics as one line of JSON, until the parent process ends.

Each line has `kind`, `topic`, `stamp_ns`, `arrival_ns` (system time) and `record`, in which bytes are URL-safe base64.
Two kinds are not messages: `refused` reports an invalid one, and `lost` counts those that did not reach the output.
The kind `settings`, which only --kinds prints, has the changed parameters of a node.
With --commands, each line of the input is a command, and a line of the kind `reply` answers it.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from threading import Event, Thread
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.messages import MessageError
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.records.topics import (
    ATTENTION_TOPIC,
    DECISIONS_TOPIC,
    FLAGS_TOPIC,
    FRAMES_TOPIC,
    PRESENCE_TOPIC,
    ROBOT_SPEECH_TOPIC,
    SHADOW,
    STATUS_TOPIC,
    UTTERANCES_TOPIC,
    WINDOWS_TOPIC,
)
from norm_core.records.window import ClosedWindow
from norm_core.streams.bounded_queue import BoundedQueue
from norm_nodes.base.convert import record_class
from norm_nodes.base.executors import fastest_executor, open_observer
from norm_nodes.tools.graph_commands import GraphCommands, make_plain_record

# The kind of each topic's lines, and its record. A monitor in the shadow has topics of its own; the kinds are the same.
TOPICS: dict[str, tuple[str, type]] = {
    STATUS_TOPIC: ("status", MonitorStatus),
    UTTERANCES_TOPIC: ("utterance", Utterance),
    ROBOT_SPEECH_TOPIC: ("robot_speech", RobotSpeech),
    PRESENCE_TOPIC: ("presence", Presence),
    FLAGS_TOPIC: ("flag", SocialFlag),
    f"{SHADOW}{FLAGS_TOPIC}": ("flag", SocialFlag),
    DECISIONS_TOPIC: ("decision", Decision),
    WINDOWS_TOPIC: ("window", ClosedWindow),
    FRAMES_TOPIC: ("frame", Frame),
}
ATTENTION_TOPICS = (ATTENTION_TOPIC, f"{SHADOW}{ATTENTION_TOPIC}")
KINDS = {"attention", "settings", *(kind for kind, _ in TOPICS.values())}
# Deep, because the middleware counts nothing of what a burst pushes out. No deadline, so that any reliable publisher
# matches.
_QOS = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.RELIABLE)
# How many lines wait while the reader of the output is slow.
MAX_LINES = 10_000
# How long the executor spins before the program checks whether to end.
SPIN_S = 0.5
# How long the writing thread waits for a line before it reports losses.
WAIT_S = 0.5


class GraphSubscriptions:
    """Subscribe to the topics of some kinds in one namespace, and queue a line for each message."""

    def __init__(self, node: Node, namespace: str, lines: BoundedQueue[str], kinds: Collection[str]) -> None:
        self._lines = lines
        for name, (kind, record_type) in TOPICS.items():
            if kind in kinds:
                convert = partial(make_plain_record, record_type)
                self._subscribe(node, f"{namespace}/{name}", kind, record_class(record_type), convert)
        for name in ATTENTION_TOPICS if "attention" in kinds else ():
            self._subscribe(node, f"{namespace}/{name}", "attention", Bool, lambda message: {"data": message.data})
        if "settings" in kinds:
            self._subscribe(node, "/parameter_events", "settings", ParameterEvent, _describe_changes)

    def _subscribe(
        self, node: Node, topic: str, kind: str, type_: Any, convert: Callable[[Any], dict[str, Any]]
    ) -> None:
        def report_loss(event: Any) -> None:
            self._put("lost", topic, {"count": event.total_count_change})

        def report_refusal(event: Any) -> None:
            problem = "a publisher is best effort, so that its messages do not arrive; make it reliable"
            self._put("refused", topic, {"problem": problem})

        def on_message(message: Any) -> None:
            try:
                self._put(kind, topic, convert(message))
            except MessageError as error:
                self._put("refused", topic, {"problem": str(error)})

        events = SubscriptionEventCallbacks(message_lost=report_loss, incompatible_qos=report_refusal)
        node.create_subscription(type_, topic, on_message, _QOS, event_callbacks=events)

    def reply(self, record: dict[str, Any]) -> None:
        """Queue the reply to a command."""
        self._put("reply", "", record)

    def _put(self, kind: str, topic: str, record: dict[str, Any]) -> None:
        line = {"kind": kind, "topic": topic, "stamp_ns": record.get("stamp_ns"), "arrival_ns": time.time_ns()}
        # Only ASCII, so that no terminal interprets a control character of a transcript.
        self._lines.put(json.dumps({**line, "record": record}, default=list))


def main() -> int:
    """Print lines."""
    parser = argparse.ArgumentParser(prog="graph_printer", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("namespace", help="namespace of the nodes, such as /tactful")
    parser.add_argument("--frames", action="store_true", help="print the kept frames too, with their pictures")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), help="print these kinds alone")
    parser.add_argument("--commands", action="store_true", help="run the commands of the input")
    options = parser.parse_args()
    parent = os.getppid()
    ended = Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        # A node that is killed leaves shared memory behind.
        signal.signal(signal_number, lambda *_: ended.set())
    lines: BoundedQueue[str] = BoundedQueue("lines", MAX_LINES)
    writer = Thread(target=_write, args=(lines,), daemon=True)
    writer.start()
    with open_observer("graph_stream") as node:
        kinds = options.kinds or KINDS - {"settings"} - (set() if options.frames else {"frame"})
        subscriptions = GraphSubscriptions(node, options.namespace, lines, kinds)
        executor = fastest_executor()
        executor.add_node(node)
        if options.commands:
            commands = GraphCommands(node, options.namespace, subscriptions.reply)
            Thread(target=_read, args=(executor, commands), daemon=True).start()
        while os.getppid() == parent and writer.is_alive() and not ended.is_set():
            executor.spin_once(timeout_sec=SPIN_S)
    return 0


def _describe_changes(event: ParameterEvent) -> dict[str, Any]:
    changed = {parameter.name: parameter_value_to_python(parameter.value) for parameter in event.changed_parameters}
    return {"node": event.node, "settings": changed}


def _read(executor: Any, commands: GraphCommands) -> None:
    """Run each line of the input in the executor's thread."""
    for line in sys.stdin:
        executor.create_task(commands.run, line)


def _write(lines: BoundedQueue[str]) -> None:
    """Write the lines; end where nobody reads them."""
    reported = 0
    try:
        while True:
            line = lines.get(WAIT_S)
            dropped = lines.status().dropped
            if dropped > reported:
                lost = {"kind": "lost", "topic": "", "stamp_ns": None, "arrival_ns": time.time_ns()}
                _print(json.dumps({**lost, "record": {"count": dropped - reported}}))
                reported = dropped
            if line is not None:
                _print(line)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit would fail too


def _print(line: str) -> None:
    """Write a line and its end at once, so that no log line of another thread comes between."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
