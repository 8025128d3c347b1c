"""The one module that touches private attributes of rclpy. Each function gives the reason why it must."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rclpy.action import ActionServer
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter


def parameter_overrides(node: Node) -> Mapping[str, Parameter]:
    """Return the parameters that the command line and files set.

    rclpy gives them only to parameters that are declared; those of a misspelt name would go unnoticed.
    """
    overrides: Mapping[str, Parameter] = node._parameter_overrides  # noqa: SLF001
    return overrides


class Transitions(NamedTuple):
    """The state of a lifecycle node by its label, and its transitions: the possible by label, all by number."""

    state: str
    possible: Mapping[str, int]
    labels: Mapping[int, str]


def transitions(node: LifecycleNode) -> Transitions:
    """Read a node's state machine, which rclpy shows to clients of its services and not to the node itself."""
    machine: Any = node._state_machine  # noqa: SLF001
    return Transitions(
        machine.current_state[1],
        {label: number for number, label, *_ in machine.available_transitions},
        {number: label for number, label, *_ in machine.transition_graph},
    )


Respond = Callable[[Any, Any], None]  # takes a response and the header of its request


def change_state_service(node: LifecycleNode) -> Any:
    """Return the service by which clients change a node's state; rclpy keeps it to itself."""
    return node._service_change_state  # noqa: SLF001


def answer_later(
    service: Any, begin: Callable[[tuple[Any, Any], Any], None]
) -> tuple[Callable[[Any, Any], Any], Respond]:
    """Let `begin` take each pair of request and response, with the header; return the callback, and what responds.

    Executors send whatever a callback returns, and do not await it: a long callback would keep them for seconds.
    """
    callback, respond = service.callback, service.send_response
    service.callback = lambda request, response: (request, response)  # which executors hand to send_response
    service.send_response = begin
    return callback, respond


def answer_goal(server: ActionServer, goal_id: bytes, response: Any) -> None:
    """Answer who asked for a goal's result at once.

    rclpy answers in a task of the executor, which may run only after the node has ended.
    """
    future = server._result_futures[goal_id]  # noqa: SLF001
    future._set_executor(None)  # noqa: SLF001
    future.set_result(response)
