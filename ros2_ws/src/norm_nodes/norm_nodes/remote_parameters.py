"""Get or set parameters of a running node; print the values before and after, or why there are none, as JSON."""

import argparse
import json
import os
import sys
from typing import Any

import rclpy
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import get_parameter_value, parameter_value_to_python
from rclpy.signals import SignalHandlerOptions

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
    parser = argparse.ArgumentParser(prog="remote_parameters", description=__doc__)
    parser.add_argument("node")
    parser.add_argument("name", nargs="?", default="", help="all parameters where it is left out")
    parser.add_argument("value", nargs="?", help="sets the parameter")
    given = parser.parse_args()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = Node(f"remote_parameters_{os.getpid()}", enable_rosout=False, start_parameter_services=False)
        print(json.dumps(_answer(node, given.node, given.name, given.value)))
    finally:
        rclpy.try_shutdown()
    return 0


def _answer(node: Node, remote: str, name: str, text: str | None) -> dict[str, Any]:
    names = [name] if name else _names(node, remote)
    present = (
        None
        if names is None
        else _call(node, GetParameters, f"{remote}/get_parameters", GetParameters.Request(names=names))
    )
    if names is None or present is None:
        return {"problem": f"{remote}: no node of this name answers; start it, or check --namespace and ROS_DOMAIN_ID"}
    values = dict(zip(names, present.values, strict=False))  # a name that is not declared has no value
    if text is None:
        there = {name: value for name, value in sorted(values.items()) if value.type != ParameterType.PARAMETER_NOT_SET}
        return {"values": {name: parameter_value_to_python(value) for name, value in there.items()}}
    wanted = typed_value(text, values.get(name, ParameterValue()))
    request = SetParameters.Request(parameters=[Parameter(name=name, value=wanted)])
    answer = _call(node, SetParameters, f"{remote}/set_parameters", request)
    if answer is None:
        return {"problem": f"{remote}: gave no answer within {WAIT_S:g} s; read its status"}
    (result,) = answer.results
    if not result.successful:
        return {"problem": f"{remote}: {name} is refused: {result.reason}"}
    before = values.get(name, ParameterValue())
    return {"values": {name: _plain(wanted, before)}, "before": parameter_value_to_python(before)}


def _plain(value: ParameterValue, before: ParameterValue) -> Any:
    """Return a value that was set; an empty list has no type."""
    if value.type == before.type and value.type >= ParameterType.PARAMETER_BYTE_ARRAY:
        return list(parameter_value_to_python(value))
    return parameter_value_to_python(value)


def _names(node: Node, remote: str) -> list[str] | None:
    listed = _call(node, ListParameters, f"{remote}/list_parameters", ListParameters.Request())
    return None if listed is None else list(listed.result.names)


def _call(node: Node, type_: Any, service: str, request: Any) -> Any:
    """Return a service's response; None if it is not there, or does not answer in time."""
    client = node.create_client(type_, service)
    if not client.wait_for_service(timeout_sec=WAIT_S):
        return None
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=WAIT_S)
    return future.result() if future.done() else None


if __name__ == "__main__":
    sys.exit(main())
