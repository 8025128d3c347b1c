"""A leaf of a behaviour tree that asks Tactful what to do next, with rclpy alone.

./tactful nodes selector        # in another terminal
python examples/behaviour_tree_client.py
"""

import sys

import rclpy
from norm_interfaces.action import SelectAction
from norm_interfaces.msg import OtherAgent
from rclpy.action import ActionClient
from rclpy.node import Node

ANSWERED = 0
PATIENCE_S = 20.0


def tick(node: Node, goal: SelectAction.Goal) -> SelectAction.Result | None:
    """One tick of the leaf: the result, or None where no selector answered in time."""
    client = ActionClient(node, SelectAction, "/tactful/select_action")
    try:
        if not client.wait_for_server(timeout_sec=PATIENCE_S):
            return None
        sent = client.send_goal_async(goal, feedback_callback=lambda message: print("...", message.feedback.step))
        rclpy.spin_until_future_complete(node, sent, timeout_sec=PATIENCE_S)
        handle = sent.result()
        if handle is None or not handle.accepted:
            return None
        answer = handle.get_result_async()
        rclpy.spin_until_future_complete(node, answer, timeout_sec=PATIENCE_S)
        return answer.result().result if answer.done() else None
    finally:
        client.destroy()


def main() -> int:
    rclpy.init()
    node = Node("behaviour_tree")
    goal = SelectAction.Goal()
    goal.candidates = ["Stir the soup in the pot.", "Lay plates on the table.", ""]
    goal.situation = "The guests are about to eat at the table."
    goal.others_given = True
    goal.others = [OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")]
    goal.deadline_ns = node.get_clock().now().nanoseconds + 5_000_000_000
    result = tick(node, goal)
    rclpy.try_shutdown()
    if result is None:
        print("FAILURE: no selector answered")
        return 2
    decision = result.decision
    print("SUCCESS" if decision.outcome == ANSWERED else "FAILURE", decision.explanation, sep=": ")
    return 0 if decision.outcome == ANSWERED else 1


if __name__ == "__main__":
    sys.exit(main())
