"""An action server whose owner ends each goal, at once and in the executor's thread."""

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from norm_core.records.stamps import join_stamp
from norm_nodes.base.endpoint import REQUESTS
from norm_nodes.base.rclpy_internals import check_goals_can_end, end_goal

_PROFILES = dict.fromkeys(
    (
        "goal_service_qos_profile",
        "result_service_qos_profile",
        "cancel_service_qos_profile",
        "feedback_pub_qos_profile",
    ),
    REQUESTS,
)


def read_deadline(goal: Any) -> int | None:
    """Return the deadline of a goal in nanoseconds; None if it is zero or negative."""
    deadline_ns = join_stamp(goal.deadline.sec, goal.deadline.nanosec)
    return deadline_ns if deadline_ns > 0 else None


class GoalServer(ActionServer):
    """An action server that lives as long as its node. It accepts every goal unless the node is unconfigured.

    A rejection gives no reason, so a configured node refuses a goal by its result.

    It outlives a clean-up, because clients still ask for results then, and because the events executor crashed when
    an action server was destroyed with requests in its queue.
    """

    def __init__(self, node: Node, type_: Any, name: str) -> None:
        self._owner: Any = node
        ActionServer.__init__(self, node, type_, name, lambda _: None, **_PROFILES)
        check_goals_can_end(self)
        self.close()

    def open(self, begin: Callable[[Any], None], cancel: Callable[[Any], None]) -> None:
        """Accept goals. `begin` and `cancel` get the handle of a goal and must be quick."""

        def on_cancel(handle: Any) -> CancelResponse:
            self._owner.executor.create_task(cancel, handle)  # once rclpy has changed the goal's state
            return CancelResponse.ACCEPT

        self._begin = begin
        self.register_goal_callback(lambda _: GoalResponse.ACCEPT)
        self.register_cancel_callback(on_cancel)

    def close(self) -> None:
        """Reject further goals."""
        self.register_goal_callback(lambda _: GoalResponse.REJECT)
        self.register_cancel_callback(None)

    def notify_execute(self, goal_handle: Any, execute_callback: Any) -> None:
        """Begin a goal at once. rclpy would begin and end it in a task of the executor."""
        try:
            self._begin(goal_handle)
        except Exception:  # noqa: BLE001  one goal that a node fails at must not end the node
            self._owner.get_logger().error(traceback.format_exc())
            self.end(goal_handle, goal_handle.abort, self.action_type.Result())

    def end(self, handle: Any, change_state: Callable[[], None], result: Any) -> None:
        """End a goal by a method of its handle, and send the result to the client, before this returns."""
        end_goal(self, handle, change_state, result)
