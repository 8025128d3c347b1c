"""Commands to the nodes of a graph: parameters, verdicts and memory of the monitor, goals of the selector."""

import json
from collections.abc import Callable
from typing import Any

from norm_interfaces.action import SelectAction
from norm_interfaces.srv import ReviewFlag
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.time import Time
from std_srvs.srv import Trigger

from norm_core.records.decision import Decision, OtherAgent
from norm_core.records.flag import Attribute, Polarity, Verdict
from norm_core.records.json_codec import from_plain, to_plain
from norm_nodes.base.convert import from_ros, to_ros

Reply = Callable[[dict[str, Any]], None]


class GraphCommands:
    """Call the monitor's services and the selector's action; each reply comes later, in the executor's thread."""

    def __init__(self, node: Node, namespace: str, reply: Reply) -> None:
        self._reply = reply
        self._get = node.create_client(GetParameters, f"{namespace}/monitor/get_parameters")
        self._set = node.create_client(SetParameters, f"{namespace}/monitor/set_parameters")
        self._recent = node.create_client(Trigger, f"{namespace}/recent")
        self._review = node.create_client(ReviewFlag, f"{namespace}/review")
        self._action = f"{namespace}/select_action"
        self._select = ActionClient(node, SelectAction, self._action)

    def run(self, text: str) -> None:
        """Run one command. A line without an id gets no reply."""
        try:
            command = json.loads(text)
            command_id = int(command["id"])
        except (ValueError, TypeError, KeyError):
            return
        try:
            self._run(command_id, command)
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
            self._reply({"id": command_id, "problem": f"the command is invalid: {error!r}"})

    def _run(self, command_id: int, command: dict[str, Any]) -> None:
        if "get" in command:
            names = list(command["get"])

            def read_values(response: Any) -> dict[str, Any]:
                values = map(parameter_value_to_python, response.values)
                return {"values": {name: _make_plain(value) for name, value in zip(names, values, strict=False)}}

            self._call(command_id, self._get, GetParameters.Request(names=names), read_values)
        elif "set" in command:
            parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in command["set"].items()]
            self._call(command_id, self._set, SetParameters.Request(parameters=parameters), _read_set_problem)
        elif "recent" in command:
            self._call(command_id, self._recent, Trigger.Request(), lambda reply: {"recent": json.loads(reply.message)})
        elif "select" in command:
            self._send_goal(command_id, command["select"])
        else:
            self._call(command_id, self._review, _make_review_request(command["review"]), _read_review_problem)

    def _call(self, command_id: int, client: Any, request: Any, read: Callable[[Any], dict[str, Any]]) -> None:
        if not client.service_is_ready():
            self._reply({"id": command_id, "problem": f"{client.srv_name}: no node serves it; start the monitor"})
            return

        def on_response(future: Any) -> None:
            self._reply({"id": command_id, "problem": "", **read(future.result())})

        client.call_async(request).add_done_callback(on_response)

    def _send_goal(self, command_id: int, fields: dict[str, Any]) -> None:
        if not self._select.server_is_ready():
            self._reply({"id": command_id, "problem": f"{self._action}: no node serves it; start the selector"})
            return
        goal = SelectAction.Goal(others_given=fields["others"] is not None)
        goal.candidates, goal.situation, goal.facts = fields["candidates"], fields["situation"], fields["facts"]
        goal.others = [to_ros(from_plain(OtherAgent, other)) for other in fields["others"] or ()]
        goal.deadline = Time(nanoseconds=fields["deadline_ns"]).to_msg()

        def on_result(future: Any) -> None:
            decision = future.result().result.decision
            # A goal that fails has an empty result, which would read as an answer.
            problem = "" if decision.decision_id else f"{self._action}: the goal failed; see the selector's log"
            self._reply({"id": command_id, "problem": problem, "decision": make_plain_record(Decision, decision)})

        def on_handle(future: Any) -> None:
            if future.result().accepted:
                future.result().get_result_async().add_done_callback(on_result)
            else:
                self._reply({"id": command_id, "problem": f"{self._action}: the selector is unconfigured; activate it"})

        self._select.send_goal_async(goal).add_done_callback(on_handle)


def _make_plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else list(value)


def _read_set_problem(response: Any) -> dict[str, Any]:
    return {"problem": "; ".join(result.reason for result in response.results if not result.successful)}


def _read_review_problem(response: Any) -> dict[str, Any]:
    return {"problem": "" if response.recorded else response.message}


def _make_review_request(review: dict[str, Any]) -> Any:
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


def make_plain_record(record_type: type, message: Any) -> dict[str, Any]:
    """Convert a message to its record in plain values. Raises MessageError if it is invalid."""
    plain: dict[str, Any] = to_plain(from_ros(record_type, message))
    return plain
