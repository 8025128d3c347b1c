"""Ask the selector for the next action from a leaf of a behaviour tree, with rclpy and norm_interfaces alone.

eval "$(./tactful env)" && python examples/behaviour_tree_client.py

In a second terminal, after the same `eval`, run the selector:
python -m norm_nodes.node_host --autostart selector
The leaf prints each step and the decision. It exits with 0 for SUCCESS, 1 for FAILURE and 2 without an answer.
"""

import signal
import sys
import time
from collections.abc import Callable
from threading import Event

import rclpy
from norm_interfaces.action import SelectAction
from norm_interfaces.msg import OtherAgent, Outcome
from rclpy.action import ActionClient
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

TIMEOUT_S = 20.0
ANSWER_WITHIN = Duration(seconds=5)


def wait(node: Node, is_done: Callable[[], bool], halted: Event) -> bool:
    """Spin until something is done, the tree is halted or the time is over; return whether it is done."""
    until_s = time.monotonic() + TIMEOUT_S
    while not (is_done() or halted.is_set()) and time.monotonic() < until_s:
        rclpy.spin_once(node, timeout_sec=0.1)
    return is_done()


def tick(node: Node, goal: SelectAction.Goal, halted: Event) -> SelectAction.Result | None:
    """Tick the leaf once; return the result, or None where no selector answers in time."""
    client = ActionClient(node, SelectAction, "tactful/select_action")
    try:
        if not wait(node, client.server_is_ready, halted):
            return None
        goal.deadline = (node.get_clock().now() + ANSWER_WITHIN).to_msg()
        sent = client.send_goal_async(goal, feedback_callback=lambda message: print("step:", message.feedback.step))
        if not wait(node, sent.done, halted) or not sent.result().accepted:
            return None
        result = sent.result().get_result_async()
        return result.result().result if wait(node, result.done, halted) else None
    finally:
        client.destroy()


def main() -> int:
    """Ask the selector once and print the decision; return an exit code."""
    halted = Event()
    signal.signal(signal.SIGINT, lambda *_: halted.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("behaviour_tree")
    goal = SelectAction.Goal()
    goal.candidates = ["Stir the soup in the pot.", "Lay plates on the table.", ""]  # "": none of them
    goal.situation = "The guests are about to eat at the table."
    goal.others_given = True
    goal.others = [OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")]
    result = tick(node, goal, halted)
    node.destroy_node()
    rclpy.shutdown()
    if result is None:
        print("FAILURE: no selector answered")
        return 2
    succeeded = result.decision.outcome == Outcome.ANSWERED
    print("SUCCESS" if succeeded else "FAILURE", result.decision.explanation, sep=": ")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
