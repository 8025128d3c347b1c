"""Ask the selector for the next action from a leaf of a behaviour tree, with rclpy and norm_interfaces alone.

eval "$(./tactful env)" && python examples/behaviour_tree_client.py

In a second terminal run the selector: ./tactful nodes selector
The leaf prints each step and the decision. It exits with 0 for SUCCESS, 1 for FAILURE and 2 without an answer.
"""

import sys

import rclpy
from norm_interfaces.action import SelectAction
from norm_interfaces.msg import Decision, OtherAgent
from rclpy.action import ActionClient
from rclpy.node import Node

TIMEOUT_S = 20.0


def tick(node: Node, goal: SelectAction.Goal) -> SelectAction.Result | None:
    """Tick the leaf once; return the result, or None where no selector answers in time."""
    client = ActionClient(node, SelectAction, "/tactful/select_action")
    try:
        if not client.wait_for_server(timeout_sec=TIMEOUT_S):
            return None
        sent = client.send_goal_async(goal, feedback_callback=lambda message: print("step:", message.feedback.step))
        rclpy.spin_until_future_complete(node, sent, timeout_sec=TIMEOUT_S)
        handle = sent.result()
        if handle is None or not handle.accepted:
            return None
        result = handle.get_result_async()
        rclpy.spin_until_future_complete(node, result, timeout_sec=TIMEOUT_S)
        return result.result().result if result.done() else None
    finally:
        client.destroy()


def main() -> int:
    """Ask the selector once and print the decision; return an exit code."""
    rclpy.init()
    node = Node("behaviour_tree")
    goal = SelectAction.Goal()
    goal.candidates = ["Stir the soup in the pot.", "Lay plates on the table.", ""]  # "": none of them
    goal.situation = "The guests are about to eat at the table."
    goal.others_given = True
    goal.others = [OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")]
    goal.deadline_ns = node.get_clock().now().nanoseconds + 5_000_000_000
    result = tick(node, goal)
    node.destroy_node()
    rclpy.try_shutdown()
    if result is None:
        print("FAILURE: no selector answered")
        return 2
    succeeded = result.decision.outcome == Decision.OUTCOME_ANSWERED
    print("SUCCESS" if succeeded else "FAILURE", result.decision.explanation, sep=": ")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
