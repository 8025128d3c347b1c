"""Get or set parameters of a running node; print the values before and after, or why there are none, as JSON.

The arguments are the node, a parameter (empty for all) and a value that it is set to.
"""

import json
import sys
from typing import Any

import rclpy
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rclpy.node import Node
from rclpy.parameter import get_parameter_value, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient
from rclpy.task import Future

from norm_nodes.executors import observer

WAIT_S = 5.0  # for discovery, and for each answer


def typed_value(text: str, present: ParameterValue) -> ParameterValue:
    """Return a value written as YAML, of the type of the present one where that fits."""
    value = get_parameter_value(text)
    if present.type == ParameterType.PARAMETER_STRING:
        return ParameterValue(type=present.type, string_value=value.string_value or text)
    if present.type == ParameterType.PARAMETER_DOUBLE and value.type == ParameterType.PARAMETER_INTEGER:
        return ParameterValue(type=present.type, double_value=float(value.integer_value))
    return ParameterValue(type=present.type) if text.split() == ["[]"] else value


def main() -> int:
    """Get or set."""
    remote, name, *values = sys.argv[1:]
    with observer("remote_parameters") as node:
        print(json.dumps(_answer(node, remote, name, *values)))
    return 0


def _answer(node: Node, remote: str, name: str, text: str | None = None) -> dict[str, Any]:
    client = AsyncParameterClient(node, remote)
    is_there = client.wait_for_services(WAIT_S)

    def result_of(future: Future) -> Any:
        """Return the response to a call; None if it does not come in time."""
        rclpy.spin_until_future_complete(node, future, timeout_sec=WAIT_S)
        return future.result() if future.done() else None

    listed = result_of(client.list_parameters()) if is_there and not name else None
    names = [name] if name else list(listed.result.names) if listed else []
    present = result_of(client.get_parameters(names)) if is_there and names else None
    if present is None:
        return {"problem": f"{remote}: no node of this name answers; start it, or check --namespace and ROS_DOMAIN_ID"}
    values = dict(zip(names, present.values, strict=False))  # a name that is not declared has no value
    if text is None:
        there = {name: value for name, value in sorted(values.items()) if value.type != ParameterType.PARAMETER_NOT_SET}
        return {"values": {name: parameter_value_to_python(value) for name, value in there.items()}}
    before = values.get(name, ParameterValue())
    wanted = typed_value(text, before)
    answer = result_of(client.set_parameters([Parameter(name=name, value=wanted)]))
    if answer is None:
        return {"problem": f"{remote}: gave no answer within {WAIT_S:g} s; read its status"}
    (result,) = answer.results
    if not result.successful:
        return {"problem": f"{remote}: {name} is refused: {result.reason}"}
    return {"values": {name: _plain(wanted, before)}, "before": parameter_value_to_python(before)}


def _plain(value: ParameterValue, before: ParameterValue) -> Any:
    """Return a value that was set; an empty list has no type."""
    if value.type == before.type and value.type >= ParameterType.PARAMETER_BYTE_ARRAY:
        return list(parameter_value_to_python(value))
    return parameter_value_to_python(value)


if __name__ == "__main__":
    sys.exit(main())
