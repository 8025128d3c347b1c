"""Print every message of Tactful's topics as one line of JSON, until whoever started this has gone.

Each line has `kind`, `topic`, `stamp_ns`, `arrival_ns` (system time) and `record`, in which bytes are URL-safe base64.
Two kinds are no messages: `refused` reports an invalid one, and `lost` counts those that did not reach the output.
With --commands, each line of the input is a command, and a line of the kind `reply` answers it.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

from norm_interfaces.action import SelectAction
from norm_interfaces.srv import ReviewFlag
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from std_msgs.msg import Bool

from norm_core.records.decision import Decision, OtherAgent
from norm_core.records.flag import Attribute, Polarity, SocialFlag, Verdict
from norm_core.records.frame import Frame
from norm_core.records.json_codec import from_plain, to_plain
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
from norm_nodes.convert import from_ros, record_class, to_ros
from norm_nodes.executors import fastest_executor, observer

Reply = Callable[[dict[str, Any]], None]


class GraphCommands:
    """Call the monitor's services and the selector's action; each reply comes later, in the executor's thread."""

    def __init__(self, node: Node, namespace: str, reply: Reply) -> None:
        self._reply = reply
        self._get = node.create_client(GetParameters, f"{namespace}/monitor/get_parameters")
        self._set = node.create_client(SetParameters, f"{namespace}/monitor/set_parameters")
        self._review = node.create_client(ReviewFlag, f"{namespace}/review")
        self._action = f"{namespace}/select_action"
        self._select = ActionClient(node, SelectAction, self._action)

    def run(self, text: str) -> None:
        """Run one command. What is no command has no reply, as it has no id."""
        try:
            command = json.loads(text)
            number = int(command["id"])
        except (ValueError, TypeError, KeyError):
            return
        try:
            self._run(number, command)
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
            self._reply({"id": number, "problem": f"the command is invalid: {error!r}"})

    def _run(self, number: int, command: dict[str, Any]) -> None:
        if "get" in command:
            names = list(command["get"])

            def take_values(response: Any) -> dict[str, Any]:
                values = map(parameter_value_to_python, response.values)
                return {"values": {name: _plain(value) for name, value in zip(names, values, strict=False)}}

            self._call(number, self._get, GetParameters.Request(names=names), take_values)
        elif "set" in command:
            wanted = [Parameter(name, value=value).to_parameter_msg() for name, value in command["set"].items()]
            self._call(number, self._set, SetParameters.Request(parameters=wanted), _problem_of_set)
        elif "select" in command:
            self._send_goal(number, command["select"])
        else:
            self._call(number, self._review, _review_request(command["review"]), _problem_of_review)

    def _call(self, number: int, client: Any, request: Any, read: Callable[[Any], dict[str, Any]]) -> None:
        if not client.service_is_ready():
            self._reply({"id": number, "problem": f"{client.srv_name}: no node serves it; start the monitor"})
            return

        def take(future: Any) -> None:
            self._reply({"id": number, "problem": "", **read(future.result())})

        client.call_async(request).add_done_callback(take)

    def _send_goal(self, number: int, fields: dict[str, Any]) -> None:
        if not self._select.server_is_ready():
            self._reply({"id": number, "problem": f"{self._action}: no node serves it; start the selector"})
            return
        goal = SelectAction.Goal(others_given=fields["others"] is not None)
        goal.candidates, goal.situation, goal.facts = fields["candidates"], fields["situation"], fields["facts"]
        goal.others = [to_ros(from_plain(OtherAgent, other)) for other in fields["others"] or ()]
        goal.deadline = Time(nanoseconds=fields["deadline_ns"]).to_msg()

        def take_result(future: Any) -> None:
            decision = future.result().result.decision
            # A goal that fails has an empty result, which would read as an answer.
            problem = "" if decision.decision_id else f"{self._action}: the goal failed; see the selector's log"
            self._reply({"id": number, "problem": problem, "decision": _record(Decision, decision)})

        def take_handle(future: Any) -> None:
            if future.result().accepted:
                future.result().get_result_async().add_done_callback(take_result)
            else:
                self._reply({"id": number, "problem": f"{self._action}: the selector is not active; activate it"})

        self._select.send_goal_async(goal).add_done_callback(take_handle)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else list(value)


def _problem_of_set(response: Any) -> dict[str, Any]:
    return {"problem": "; ".join(result.reason for result in response.results if not result.successful)}


def _problem_of_review(response: Any) -> dict[str, Any]:
    return {"problem": "" if response.recorded else response.message}


def _review_request(review: dict[str, Any]) -> Any:
    request = ReviewFlag.Request(
        event_id=review["event_id"],
        coder=review["coder"],
        verdict=list(Verdict).index(Verdict(review["verdict"])),
        attributes=[list(Attribute).index(Attribute(name)) for name in review["attributes"]],
        comment=review["note"],
    )
    if review["polarity"] is not None:
        request.polarity = list(Polarity).index(Polarity(review["polarity"]))
    return request


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
}
FRAMES, ATTENTION = FRAMES_TOPIC, (ATTENTION_TOPIC, f"{SHADOW}{ATTENTION_TOPIC}")
# Deep, because the middleware counts nothing of what a burst pushes out. No deadline, so that any reliable publisher
# matches.
_QOS = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.RELIABLE)
# Of lines, while the reader of the output is slow.
LINES_QUEUE = 10_000
SPIN_S, GET_S = 0.5, 0.5


class GraphSubscriptions:
    """Subscribe to the topics of one namespace, and queue a line for each message."""

    def __init__(self, node: Node, namespace: str, lines: BoundedQueue[str], *, frames: bool) -> None:
        self._lines = lines
        topics = {**TOPICS, FRAMES: ("frame", Frame)} if frames else TOPICS
        for name, (kind, record_type) in topics.items():
            self._subscribe(node, f"{namespace}/{name}", kind, record_class(record_type), partial(_record, record_type))
        for name in ATTENTION:
            self._subscribe(node, f"{namespace}/{name}", "attention", Bool, lambda message: {"data": message.data})

    def _subscribe(
        self, node: Node, topic: str, kind: str, type_: Any, convert: Callable[[Any], dict[str, Any]]
    ) -> None:
        def lost(event: Any) -> None:
            self._put("lost", topic, {"count": event.total_count_change})

        def refused(event: Any) -> None:
            problem = "a publisher is best effort, so that its messages do not arrive; make it reliable"
            self._put("refused", topic, {"problem": problem})

        def take(message: Any) -> None:
            try:
                self._put(kind, topic, convert(message))
            except MessageError as error:
                self._put("refused", topic, {"problem": str(error)})

        events = SubscriptionEventCallbacks(message_lost=lost, incompatible_qos=refused)
        node.create_subscription(type_, topic, take, _QOS, event_callbacks=events)

    def reply(self, record: dict[str, Any]) -> None:
        """Queue the reply to a command."""
        self._put("reply", "", record)

    def _put(self, kind: str, topic: str, record: dict[str, Any]) -> None:
        line = {"kind": kind, "topic": topic, "stamp_ns": record.get("stamp_ns"), "arrival_ns": time.time_ns()}
        # ASCII alone: no terminal takes a control character of a transcript for a command.
        self._lines.put(json.dumps({**line, "record": record}))


def main() -> int:
    """Print lines."""
    parser = argparse.ArgumentParser(prog="graph_printer", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("namespace", help="namespace of the nodes, such as /tactful")
    parser.add_argument("--frames", action="store_true", help="print the kept frames too, with their pictures")
    parser.add_argument("--commands", action="store_true", help="run the commands of the input")
    options = parser.parse_args()
    parent, ended = os.getppid(), Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())  # a node that is killed leaves shared memory behind
    lines: BoundedQueue[str] = BoundedQueue("lines", LINES_QUEUE)
    writer = Thread(target=_write, args=(lines,), daemon=True)
    writer.start()
    with observer("graph_stream") as node:
        subscriptions = GraphSubscriptions(node, options.namespace, lines, frames=options.frames)
        executor = fastest_executor()
        executor.add_node(node)
        if options.commands:
            commands = GraphCommands(node, options.namespace, subscriptions.reply)
            Thread(target=_read, args=(executor, commands), daemon=True).start()
        while os.getppid() == parent and writer.is_alive() and not ended.is_set():
            executor.spin_once(timeout_sec=SPIN_S)
    return 0


def _read(executor: Any, commands: GraphCommands) -> None:
    """Run each line of the input in the executor's thread."""
    for line in sys.stdin:
        executor.create_task(commands.run, line)


def _write(lines: BoundedQueue[str]) -> None:
    """Write the lines; end where nobody reads them."""
    reported = 0
    try:
        while True:
            line = lines.get(GET_S)
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


def _record(record_type: type, message: Any) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(from_ros(record_type, message))
    return plain


if __name__ == "__main__":
    sys.exit(main())
