"""The only module that touches private attributes of rclpy. Each function states why it must."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rclpy.action import ActionServer
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter

Respond = Callable[[Any, Any], None]  # gets a response and the header of its request


def read_parameter_overrides(node: Node) -> Mapping[str, Parameter]:
    """Return the parameters that the command line and files set.

    rclpy gives them only to parameters that are declared; those of a misspelt name would go unnoticed.
    """
    overrides: Mapping[str, Parameter] = node._parameter_overrides  # noqa: SLF001
    return overrides


class Transitions(NamedTuple):
    """The label of a node's state, the ids of possible transitions by label, and the labels of all by id."""

    state: str
    possible: Mapping[str, int]
    labels: Mapping[int, str]


def read_transitions(node: LifecycleNode) -> Transitions:
    """Read a node's state machine, which rclpy shows to clients of its services and not to the node itself."""
    machine: Any = node._state_machine  # noqa: SLF001
    return Transitions(
        machine.current_state[1],
        {label: transition_id for transition_id, label, *_ in machine.available_transitions},
        {transition_id: label for transition_id, label, *_ in machine.transition_graph},
    )


def get_change_state_service(node: LifecycleNode) -> Any:
    """Return the service by which clients change a node's state, which rclpy keeps private."""
    return node._service_change_state  # noqa: SLF001


def answer_later(
    service: Any, begin: Callable[[tuple[Any, Any], Any], None]
) -> tuple[Callable[[Any, Any], Any], Respond]:
    """Hand each pair of request and response to `begin`, with the header; return the callback and the responder.

    Executors send whatever a callback returns, and do not await it: a long callback would keep them for seconds. rclcpp
    lets a callback answer later (https://github.com/ros2/rclcpp/pull/1709); rclpy does not.
    """
    callback = service.callback
    respond = service.send_response
    # The executor hands the pair that this returns to send_response.
    service.callback = lambda request, response: (request, response)
    service.send_response = begin
    return callback, respond


def answer_goal(server: ActionServer, goal_id: bytes, response: Any) -> None:
    """Send the result of a goal at once to the client that asked for it.

    rclpy answers in a task of the executor, which may run only after the node has ended.
    """
    future = server._result_futures[goal_id]  # noqa: SLF001
    future._set_executor(None)  # noqa: SLF001
    future.set_result(response)
