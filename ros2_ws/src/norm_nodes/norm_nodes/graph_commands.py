"""Ask the monitor of a running graph for parameters, set its live ones, and give it verdicts.

A command is one line of JSON with an `id` and one of `get` (names), `set` (values by name) or `review` (the fields of
ReviewFlag). Its reply has the `id`, a `problem` that is empty where it was done, and for `get` the `values`.
"""

import json
from collections.abc import Callable
from typing import Any

from norm_interfaces.srv import ReviewFlag
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python

from norm_core.records.flag import Attribute, Polarity, Verdict

Reply = Callable[[dict[str, Any]], None]


class GraphCommands:
    """Call the monitor's services; each reply arrives later, in the executor's thread."""

    def __init__(self, node: Node, namespace: str, reply: Reply) -> None:
        self._reply = reply
        self._get = node.create_client(GetParameters, f"{namespace}/monitor/get_parameters")
        self._set = node.create_client(SetParameters, f"{namespace}/monitor/set_parameters")
        self._review = node.create_client(ReviewFlag, f"{namespace}/review")

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
        else:
            self._call(number, self._review, _review_request(command["review"]), _problem_of_review)

    def _call(self, number: int, client: Any, request: Any, read: Callable[[Any], dict[str, Any]]) -> None:
        if not client.service_is_ready():
            self._reply({"id": number, "problem": f"{client.srv_name}: no node serves it; start the monitor"})
            return

        def take(future: Any) -> None:
            self._reply({"id": number, "problem": "", **read(future.result())})

        client.call_async(request).add_done_callback(take)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else list(value)


def _problem_of_set(response: Any) -> dict[str, Any]:
    return {"problem": "; ".join(result.reason for result in response.results if not result.successful)}


def _problem_of_review(response: Any) -> dict[str, Any]:
    return {"problem": "" if response.recorded else response.message}


def _review_request(review: dict[str, Any]) -> Any:
    request = ReviewFlag.Request(
        event_id=review["event_id"],
        reviewer=review["reviewer"],
        verdict=list(Verdict).index(Verdict(review["verdict"])),
        attributes=[list(Attribute).index(Attribute(name)) for name in review["attributes"]],
        comment=review["note"],
    )
    if review["polarity"] is not None:
        request.polarity = list(Polarity).index(Polarity(review["polarity"]))
    return request
