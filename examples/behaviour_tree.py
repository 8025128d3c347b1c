"""Leaves of py_trees: choose an action, check words before they are said, see whether a social error is open.

eval "$(./tactful env)" && python examples/behaviour_tree.py

It needs `pip install "py_trees>=2.2,<3"`. In a second terminal, after the same `eval`, run the nodes:
python -m norm_nodes.node_host --autostart selector monitor
While no error is open, the tree chooses an action and checks its announcement. No leaf waits: spin between ticks.
"""

import math
import signal
import sys
import time
from collections.abc import Callable
from threading import Event
from typing import Any

import rclpy
from action_msgs.msg import GoalStatus
from norm_interfaces.action import CheckUtterance, SelectAction
from norm_interfaces.msg import MonitorStatus, OpenFlags, OtherAgent, Outcome, SocialFlag
from py_trees.behaviour import Behaviour
from py_trees.common import Status
from py_trees.composites import Sequence
from py_trees.decorators import Inverter
from py_trees.trees import BehaviourTree
from rclpy.action import ActionClient
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions

TIMEOUT_S = 20.0  # of this script
GRACE = Duration(seconds=1)  # for an answer on its way at the deadline
LOST_AFTER_S = 5.0  # the monitor sends its status once a second
NO_LIST = "no list of open flags arrives; look at the monitor's parameter shadow"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class GoalLeaf(Behaviour):
    """Send a goal, and read its result in a later tick. A halt cancels the goal; without a server the leaf fails."""

    action_type: Any
    action_name: str
    result: Any = None  # of the last goal
    _sent = _asked = None

    def __init__(self, name: str, make_goal: Callable[[], Any], within_s: float = 5.0) -> None:
        """Make a new goal whenever the leaf starts; it has `within_s` for its answer."""
        super().__init__(name)
        self._make_goal, self._within = make_goal, Duration(seconds=within_s)

    def setup(self, **kwargs: Any) -> None:
        """Connect to the action's server, which may come later."""
        self._node: Node = kwargs["node"]
        self._client = ActionClient(self._node, self.action_type, self.action_name)

    def initialise(self) -> None:
        """Begin anew."""
        self.result = self._sent = self._asked = None
        self._until = self._node.get_clock().now() + self._within

    def update(self) -> Status:
        """Go on by what has arrived, at once."""
        is_late = self._node.get_clock().now() > self._until + GRACE
        if is_late or not self._client.server_is_ready():
            problem = "no answer came in time" if is_late else "no node serves it"
            self.feedback_message = f"{self.action_name}: {problem}"
            return Status.FAILURE
        if self._sent is None:
            goal = self._make_goal()
            goal.deadline = self._until.to_msg()
            self._sent = self._client.send_goal_async(goal)
        elif self._asked is None and self._sent.done():
            if not self._sent.result().accepted:
                self.feedback_message = f"{self.action_name}: the node is not configured"
                return Status.FAILURE
            self._asked = self._sent.result().get_result_async()
        elif self._asked is not None and self._asked.done():
            self.result = self._asked.result().result
            if self._judge(self.result) and self._asked.result().status == GoalStatus.STATUS_SUCCEEDED:
                return Status.SUCCESS
            self.feedback_message = self.feedback_message or f"{self.action_name}: its node gave no result"
            return Status.FAILURE
        return Status.RUNNING

    def terminate(self, new_status: Status) -> None:
        """Cancel a goal that has no result, once it is accepted."""
        if self._sent is not None and self.result is None:
            self._sent.add_done_callback(lambda sent: sent.result().accepted and sent.result().cancel_goal_async())
            self._sent = None

    def shutdown(self) -> None:
        """Disconnect."""
        self._client.destroy()

    def _judge(self, result: Any) -> bool:
        """Return whether the result is a success, as an empty one may seem to be, and set the feedback message."""
        raise NotImplementedError


class SelectActionLeaf(GoalLeaf):
    """Succeed with an action, `result.decision.chosen`; abstaining is a failure."""

    action_type, action_name = SelectAction, "tactful/select_action"

    def _judge(self, result: Any) -> bool:
        self.feedback_message = result.decision.explanation
        return bool(result.decision.outcome == Outcome.ANSWERED)


class CheckUtteranceLeaf(GoalLeaf):
    """Succeed where the words were checked and nothing advises against them."""

    action_type, action_name = CheckUtterance, "tactful/check_utterance"

    def _judge(self, result: Any) -> bool:
        self.feedback_message = result.check.reason if result.check.checked else result.error_msg
        return bool(result.check.checked and not result.check.advised_against)


class SocialErrorOpen(Behaviour):
    """Succeed while an error of an attribute, or of any for None, is open that came in the last `within_s`.

    An error is open until it is closed or withdrawn, or becomes a competence. Time is that of arrival, so clocks of
    other machines do not matter. While no monitor works, nothing is known, and `if_unknown` says how the leaf answers.
    """

    def __init__(self, name: str, attribute: int | None, within_s: float = 30.0, if_unknown: str = "open") -> None:
        """Take an attribute of SocialFlag, or None; `if_unknown` is "open" or "calm"."""
        super().__init__(name)
        self._attribute, self._within_s, self._if_unknown = attribute, within_s, if_unknown
        self._open: dict[Any, tuple[float, str]] = {}  # arrival and rationale, by state of an event
        self._heartbeat_s, self._problem, self._missing = -math.inf, "", NO_LIST

    def setup(self, **kwargs: Any) -> None:
        """Subscribe to the list of open flags and to status."""
        self._node: Node = kwargs["node"]
        self._flags = self._node.create_subscription(OpenFlags, "tactful/open_flags", self._take_flags, LATCHED)
        self._node.create_subscription(MonitorStatus, "tactful/status", self._take_status, 50)

    def update(self) -> Status:
        """Answer by what has arrived, at once."""
        now_s = time.monotonic()
        is_lost = now_s - self._heartbeat_s > LOST_AFTER_S
        if not self._flags.get_publisher_count():
            self._open, self._missing = {}, NO_LIST  # of a monitor that ended
        problem = "no status of the monitor arrives; start it" if is_lost else self._problem or self._missing
        errors = [rationale for arrival_s, rationale in self._open.values() if now_s - arrival_s <= self._within_s]
        self.feedback_message = problem or "; ".join(errors)
        return Status.SUCCESS if (self._if_unknown != "calm" if problem else errors) else Status.FAILURE

    def _take_flags(self, message: OpenFlags) -> None:
        """Replace the list; a state that was in the one before keeps its arrival."""
        earlier, self._open, self._missing = self._open, {}, ""
        for flag in message.flags:
            if flag.polarity == flag.POLARITY_ERROR and self._attribute in {None, *flag.attributes}:
                state = flag.event_id, flag.decision.sec, flag.decision.nanosec
                self._open[state] = earlier.get(state, (time.monotonic(), flag.rationale))

    def _take_status(self, status: MonitorStatus) -> None:
        """Take a heartbeat of any node; only the monitor's matters."""
        if not status.node.endswith("/monitor"):
            return
        self._heartbeat_s, self._problem = time.monotonic(), ""
        if status.state != MonitorStatus.STATE_ACTIVE or status.health == MonitorStatus.HEALTH_FAILED:
            self._problem = "; ".join(status.reasons) or "the monitor is not active"


def main() -> int:
    """Tick a tree until it succeeds or the time is over; return an exit code."""
    halted = Event()
    signal.signal(signal.SIGINT, lambda *_: halted.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("behaviour_tree")
    question = SelectAction.Goal(others_given=True, situation="The guests are about to eat at the table.")
    question.candidates = ["Stir the soup in the pot.", "Lay plates on the table.", ""]  # "": none of them
    question.others = [OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")]
    is_open = SocialErrorOpen("error open?", SocialFlag.ATTRIBUTE_CONVERSATIONAL_MECHANICS)
    select = SelectActionLeaf("what next?", lambda: question)
    words = "My next step: {}".format
    check = CheckUtteranceLeaf("say so?", lambda: CheckUtterance.Goal(text=words(select.result.decision.chosen)))
    tree = BehaviourTree(Sequence("next", memory=True, children=[Inverter("calm?", is_open), select, check]))
    tree.setup(node=node)
    until_s = time.monotonic() + TIMEOUT_S
    while tree.root.status is not Status.SUCCESS and not halted.is_set() and time.monotonic() < until_s:
        tree.tick()
        rclpy.spin_once(node, timeout_sec=0.1)
    for leaf in (select, check):
        print(f"{leaf.status.name}: {leaf.feedback_message}")
    tree.root.stop(Status.INVALID)
    tree.shutdown()
    node.destroy_node()
    rclpy.shutdown()
    return 0 if check.result else 1


if __name__ == "__main__":
    sys.exit(main())
