"""The only module that goes round what rclpy offers. Each function states why it must, and the upstream thread."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from rclpy.action import ActionServer
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.task import Future

from norm_core.runtime.config import ConfigError

Respond = Callable[[Any, Any], None]  # gets a response and the header of its request
TRIED = "7.1.6 of Jazzy or 9.1.2 of Kilted"


def _read_private(owner: object, name: str) -> Any:
    """Return an attribute that an update of rclpy may take away. Raises ConfigError, after which no launch restarts."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        whose = type(owner).__name__
        raise ConfigError(
            f"rclpy: {whose} has no {name} in this version; install one that was tried: {TRIED}"
        ) from error


def read_parameter_overrides(node: Node) -> Mapping[str, Parameter]:
    """Return the parameters that the command line and files set.

    rclpy gives them only to parameters that are declared; those of a misspelt name would go unnoticed. If it is told to
    declare all that are set, it raises at an empty list, which has no type (https://github.com/ros2/rclpy/pull/339).
    """
    overrides: Mapping[str, Parameter] = _read_private(node, "_parameter_overrides")
    return overrides


def answer_later(
    service: Any, begin: Callable[[tuple[Any, Any], Any], None]
) -> tuple[Callable[[Any, Any], Any], Respond]:
    """Hand each pair of request and response to `begin`, with the header; return the callback and the responder.

    Executors send whatever a callback returns: a long callback would keep them for seconds. One that awaits keeps the
    other callbacks of its group from running, and the events executor did not await it
    (https://github.com/ros2/rclpy/pull/1478). rclcpp lets a callback answer later
    (https://github.com/ros2/rclcpp/pull/1709); rclpy does not.
    """
    callback = service.callback
    respond = service.send_response
    # The executor hands the pair that this returns to send_response.
    service.callback = lambda request, response: (request, response)
    service.send_response = begin
    return callback, respond


def check_goals_can_end(server: ActionServer) -> None:
    """Raise ConfigError where `end_goal` would fail."""
    _read_private(server, "_result_futures")
    _read_private(Future(), "_set_executor")


def end_goal(server: ActionServer, handle: Any, change_state: Callable[..., None], result: Any) -> None:
    """End a goal by a method of its handle, and send the result at once to the client that asked for it.

    rclpy answers in a task of the executor, which may run only after the node has ended. From 7.1.8 on, the method
    takes the result, and sets an empty one if it gets none (https://github.com/ros2/rclpy/pull/1219,
    https://github.com/ros2/rclpy/issues/1598).
    """
    future = server._result_futures[bytes(handle.goal_id.uuid)]  # noqa: SLF001
    future._set_executor(None)  # noqa: SLF001
    if "response" in signature(change_state).parameters:
        change_state(result)
    else:
        change_state()
        future.set_result(server.action_type.Impl.GetResultService.Response(status=handle.status, result=result))
