"""The selector's node as a process over real DDS: the action, the query topic, and the example client."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from norm_core.decision import Decision, OtherAgent, Veto
from norm_core.episode import Answer, Query
from norm_core.outcome import Outcome
from sim_replays.processes import NodeProcess

pytestmark = pytest.mark.ros

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/behaviour_tree_client.py"
COOK = OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")


@pytest.fixture
def node(domain_id: int) -> Iterator[NodeProcess]:
    with NodeProcess(["selector"], {"selector": {"when_unsure": "best_effort"}}, domain_id) as process:
        deadline_s = time.monotonic() + 90
        while "encoder is ready" not in process.said():
            assert time.monotonic() < deadline_s, f"the encoder was not loaded: {process.said()}"
            Event().wait(0.05)
        yield process


def ask(observer: Any, **fields: Any) -> tuple[Decision, list[str]]:
    """The decision on one goal, and the steps that were told of on the way."""
    from norm_interfaces.action import SelectAction
    from norm_nodes.convert import from_ros, to_ros
    from rclpy.action import ActionClient

    steps: list[str] = []
    client = ActionClient(observer.node, SelectAction, "/tactful/select_action")
    observer.until(client.server_is_ready, "the action")
    now_ns = observer.node.get_clock().now().nanoseconds
    fields = {"others_given": True, "others": [to_ros(COOK)], "deadline_ns": now_ns + 14_000_000_000, **fields}
    sent = client.send_goal_async(
        SelectAction.Goal(**fields), feedback_callback=lambda message: steps.append(message.feedback.step)
    )
    observer.until(sent.done, "the goal to be accepted")
    result = sent.result().get_result_async()
    observer.until(result.done, "a decision")
    client.destroy()
    return from_ros(Decision, result.result().result.decision), steps


def test_the_example_client_gets_its_answer(node: NodeProcess, domain_id: int) -> None:
    ran = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "SUCCESS: Lay plates on the table" in ran.stdout
    assert "the cook is doing that already" in ran.stdout
    assert len(EXAMPLE.read_text().splitlines()) < 60


def test_goals_are_decided_and_mirrored(node: NodeProcess, observer: Any) -> None:
    from norm_nodes.endpoint import EVENTS
    from std_msgs.msg import String

    mirrored = observer.collect(String, "/tactful/decisions_json", EVENTS)
    observer.until(lambda: observer.node.count_publishers("/tactful/decisions_json"), "the mirror")
    decision, steps = ask(observer, query_id="q1", candidates=["Stir the soup.", "Lay the table."])
    assert (decision.outcome, decision.chosen, decision.query_id) == (Outcome.ANSWERED, "Lay the table.", "q1")
    assert decision.candidates[0].veto is Veto.SINGLETON
    assert steps == ["observe", "veto", "retrieve", "choose", "justify", "explain"]
    assert decision.provenance.total_ns > 0
    observer.until(lambda: mirrored, "the mirror's line")
    assert json.loads(mirrored[0].data)["decision_id"] == decision.decision_id


def test_bad_goals_get_a_typed_outcome(node: NodeProcess, observer: Any) -> None:
    past, _ = ask(observer, candidates=["Wave."], deadline_ns=1)
    assert (past.outcome, "deadline" in past.explanation) == (Outcome.INVALID, True)
    unseen, _ = ask(observer, candidates=["Wave."], others_given=False, others=[])
    assert (unseen.outcome, "no frame yet" in unseen.explanation) == (Outcome.INVALID, True)
    nothing, _ = ask(observer, candidates=[])
    assert nothing.outcome is Outcome.INVALID


def test_queries_are_answered_and_those_of_others_left_alone(node: NodeProcess, observer: Any) -> None:
    from norm_nodes.convert import from_ros, record_class, to_ros
    from norm_nodes.endpoint import EVENTS

    answers = observer.collect(record_class(Answer), "/tactful/answers", EVENTS)
    publisher = observer.node.create_publisher(record_class(Query), "/tactful/queries", EVENTS)
    observer.until(publisher.get_subscription_count, "the node to listen")
    observer.until(lambda: observer.node.count_publishers("/tactful/answers"), "the node to answer")
    common: dict[str, Any] = {"stamp_ns": 7, "episode_id": "e", "others_given": True, "others": (COOK,)}
    options = ("Stir the soup.", "Lay the table.")
    for task in ("attributes", "eas"):
        publisher.publish(to_ros(Query(query_id=task, task=task, options=options, **common)))
    observer.until(lambda: answers, "an answer")
    answer = from_ros(Answer, answers[0])
    assert (answer.query_id, answer.outcome, answer.chosen, answer.stamp_ns) == ("eas", Outcome.ANSWERED, (1,), 7)
    assert len(answers) == 1


def test_a_file_that_is_not_there_is_named(domain_id: int) -> None:
    from sim_replays.processes import NodeProcessError

    with (
        pytest.raises(NodeProcessError, match=r"skills\.yaml"),
        NodeProcess(["selector"], {"selector": {"skills": "/nowhere/skills.yaml"}}, domain_id),
    ):
        pass
