"""The selector's node as a process over real DDS: the action, the query topic, and the example client."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from norm_core.records.decision import Decision, OtherAgent, Veto
from norm_core.records.episode import Answer, Query
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Person, Presence, PresenceState
from norm_monitor.replay.node_process import NodeProcess
from tests.action_selector.questions import window
from tests.action_selector.test_models import jpeg
from tests.norm_core.engines.fake_server import describe_model, serving
from tests.observer import Observer
from tests.patience import PATIENCE_S, comes_true

pytestmark = pytest.mark.ros

COOK = OtherAgent(agent_id="p1", role="cook", doing="stirring the soup on the stove")


SEEN = json.dumps(
    {
        "viewpoint": "behind the counter",
        "place": "kitchen",
        "role": "helper",
        "others": [{"role": "cook", "appearance": "", "doing": "stirring the soup", "duplicable": "no"}],
    }
)


@contextmanager
def ready(parameters: dict[str, Any], domain_id: int) -> Iterator[NodeProcess]:
    """The node, once it has loaded its encoder."""
    with NodeProcess(["selector"], {"selector": parameters}, domain_id) as process:
        deadline_s = time.monotonic() + PATIENCE_S
        while "encoder is ready" not in process.last_output():
            assert time.monotonic() < deadline_s, f"the encoder was not loaded: {process.last_output()}"
            Event().wait(0.05)
        yield process


@pytest.fixture
def node(domain_id: int) -> Iterator[NodeProcess]:
    with ready({"when_unsure": "best_effort"}, domain_id) as process:
        yield process


def ask(observer: Observer, meanwhile: Callable[[], Any] | None = None, **fields: Any) -> tuple[Decision, list[str]]:
    """The decision on one goal, and the steps that were told of on the way; the goal ends as the decision says."""
    from action_msgs.msg import GoalStatus
    from builtin_interfaces.msg import Time
    from norm_interfaces.action import SelectAction
    from norm_nodes.base.convert import from_ros, to_ros
    from rclpy.action import ActionClient

    client = ActionClient(observer.node, SelectAction, "/tactful/select_action")
    observer.until(client.server_is_ready, "the action")
    # A client of rclpy forgets its callback with the first word of the goal's end, and so may miss the last steps.
    feedback = observer.collect(SelectAction.Impl.FeedbackMessage, "/tactful/select_action/_action/feedback", 50)
    observer.meet("selector")
    sec, nanosec = observer.node.get_clock().now().seconds_nanoseconds()
    deadline = Time(sec=sec + 14, nanosec=nanosec)
    fields = {"others_given": True, "others": [to_ros(COOK)], "deadline": deadline, **fields}
    sent = client.send_goal_async(SelectAction.Goal(**fields))
    observer.until(sent.done, "the goal to be accepted")
    result = sent.result().get_result_async()
    if meanwhile:
        meanwhile()
    observer.until(result.done, "a decision")
    goal_id = bytes(sent.result().goal_id.uuid)

    def steps() -> list[str]:
        return [message.feedback.step for message in feedback if bytes(message.goal_id.uuid) == goal_id]

    if result.result().status == GoalStatus.STATUS_SUCCEEDED:  # feedback has a topic of its own, which may come later
        observer.until(lambda: "explain" in steps(), "the last step")
    client.destroy()
    ended, status = result.result().result, result.result().status
    if ended.error_code and status != GoalStatus.STATUS_CANCELED:
        assert (status, ended.error_code) == (GoalStatus.STATUS_ABORTED, ended.decision.outcome)
        assert ended.error_msg == ended.decision.explanation
    else:
        assert status in {GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED}
        assert ended.decision.outcome in {0, 1} or status == GoalStatus.STATUS_CANCELED
    return from_ros(Decision, ended.decision), steps()


# A host in which nothing happens by itself.
QUIET_HOST = """
import norm_nodes.base.heartbeat
from norm_nodes import node_host

norm_nodes.base.heartbeat.HEARTBEAT_S = node_host.SPIN_TIMEOUT_S = 86400.0
node_host.main()
"""


def test_a_decision_waits_for_no_other_event(domain_id: int, observer: Observer) -> None:
    """The events executor goes on with a goal only after a message or a timer, and no other comes here."""
    from norm_interfaces.action import SelectAction
    from rclpy.action import ActionClient

    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
    command = [sys.executable, "-c", QUIET_HOST, "selector", "--autostart"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as host:
        try:
            assert host.stdout
            assert any(line.startswith("running") for line in host.stdout)
            client = ActionClient(observer.node, SelectAction, "/tactful/select_action")
            observer.until(client.server_is_ready, "the action")
            sent = client.send_goal_async(SelectAction.Goal(candidates=["Greet the guest.", "Lay the table."]))
            observer.until(sent.done, "the goal to be accepted")
            observer.until(sent.result().get_result_async().done, "a decision")
            client.destroy()
        finally:
            host.kill()


def test_goals_are_decided_and_mirrored(node: NodeProcess, observer: Observer) -> None:
    from norm_nodes.base.endpoint import EVENTS
    from std_msgs.msg import String

    mirrored = observer.collect(String, "/tactful/decisions_json", EVENTS)
    decision, steps = ask(observer, query_id="q1", candidates=["Stir the soup.", "Lay the table."])
    assert (decision.outcome, decision.chosen, decision.query_id) == (Outcome.ANSWERED, "Lay the table.", "q1")
    assert decision.candidates[0].veto is Veto.SINGLETON
    assert steps == ["observe", "retrieve", "veto", "choose", "justify", "explain"]
    assert decision.provenance.total_ns > 0
    observer.until(lambda: mirrored, "the mirror's line")
    assert json.loads(mirrored[0].data)["decision_id"] == decision.decision_id


def test_queries_are_answered_and_those_of_others_left_alone(node: NodeProcess, observer: Observer) -> None:
    from norm_nodes.base.convert import from_ros, to_ros

    answers = observer.records(Answer, "answers")
    publisher = observer.publisher(Query, "queries")
    observer.until(publisher.get_subscription_count, "the node to listen")
    observer.meet("selector")
    common: dict[str, Any] = {"stamp_ns": 7, "episode_id": "e", "others_given": True, "others": (COOK,)}
    options = ("Stir the soup.", "Lay the table.")
    for task in ("attributes", "eas"):
        publisher.publish(to_ros(Query(query_id=task, task=task, options=options, **common)))
    observer.until(lambda: answers, "an answer")
    answer = from_ros(Answer, answers[0])
    assert (answer.query_id, answer.outcome, answer.chosen, answer.stamp_ns) == ("eas", Outcome.ANSWERED, (1,), 7)
    assert len(answers) == 1


def seen_by(server: Any) -> None:
    """Lets the server see a cook at the stove, and hold every option to be as likely as its place."""

    def complete(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": SEEN}, "finish_reason": "stop"}
        if body.get("logprobs"):
            top = [{"token": letter, "logprob": -1.0 - number} for number, letter in enumerate("ABCDEFG")]
            choice["logprobs"] = {"content": [top[0] | {"top_logprobs": top}]}
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

    server.complete = complete


def test_a_model_tells_the_node_what_others_do(domain_id: int, observer: Observer, own_models: Path) -> None:
    """A frame and a tracked person come in, nobody says who is there, and the model looks."""
    from norm_nodes.base.convert import to_ros

    with serving() as server:
        seen_by(server)
        describe_model(own_models, "eye", server.url)
        parameters = {"model": "eye", "when_unsure": "best_effort", "max_frame_age_s": 600.0}
        with ready({"ask_viewpoint": False, **parameters}, domain_id):
            now_ns = observer.node.get_clock().now().nanoseconds
            frame = replace(window(jpeg=jpeg()).frames[0], stamp_ns=now_ns)
            guest = Presence(
                stamp_ns=now_ns,
                source_topic="/humans/persons/tracked",
                state=PresenceState.PRESENT,
                persons=(Person(person_id="p7", distance_m=1.5),),
            )
            observer.meet("selector")
            taken = observer.counts_of("selector")
            for topic, entry in (("frames", frame), ("presence", guest)):
                publisher = observer.publisher(type(entry), topic)
                observer.until(publisher.get_subscription_count, "the node to listen")
                publisher.publish(to_ros(entry))
            both = ("/tactful/frames", "/tactful/presence")
            observer.until(lambda: all(map(taken().get, both)), "the node to take them in")
            decision, _ = ask(observer, candidates=["Stir the soup.", "Lay the table."], others_given=False, others=[])
    assert (decision.outcome, decision.chosen) == (Outcome.ANSWERED, "Lay the table.")
    assert decision.candidates[0].veto is Veto.SINGLETON
    assert decision.provenance.model == "eye"
    looked = [str(body["messages"]) for body in server.bodies if "response_format" in body]
    assert len(looked) == 1
    assert "the person 1.5 m away" in looked[0]


RULES = """
hard:
  - never: lay the table
    words: [table]
    why: the guests do it themselves
"""


@pytest.fixture
def file_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder from which a running node may read files."""
    monkeypatch.setenv("TACTFUL_FILE_FOLDERS", str(folder := tmp_path / "rules"))
    folder.mkdir()
    return folder


def test_house_rules_can_be_changed_at_run_time(file_folder: Path, node: NodeProcess, observer: Observer) -> None:
    rules = file_folder / "rules.yaml"

    def decide_by(text: str) -> Decision:
        rules.write_text(text, encoding="utf-8")
        assert observer.set_parameter("selector", "house_rules", str(rules)) == ""  # the same path, to read it again
        return ask(observer, candidates=["Stir the soup.", "Lay the table."])[0]

    before, vetoed = decide_by("hard: []\n"), decide_by(RULES)
    assert before.chosen == "Lay the table."
    assert vetoed.candidates[1].veto is Veto.HARD_RULE
    assert before.provenance.config_sha256 != vetoed.provenance.config_sha256
    rules.write_text("hards: []\n", encoding="utf-8")
    refused = observer.set_parameter("selector", "house_rules", str(rules))
    assert refused == "house_rules: the file is not usable; the log of selector says why"
    assert comes_true(lambda: "hards: unknown key; did you mean hard?" in node.last_output())
    assert decide_by("hard: []\n").chosen == "Lay the table."


SECRET = "hunter2"
# As passwd, netrc, an environment, YAML with an odd tag, alias or number, and JSON may hold one.
SECRETS = (
    "root:{0}:19000:0:99999\ndaemon:*:19000\n", "{0}\n", "{0}: 1\n", "hard: {0}\n", "hard: [{{why: [{0}]}}]\n",
    "hard: *{0}\n", "hard: !{0} x\n", "hard: !!int {0}\n", "{0}: 1\n{0}: 2\n", "'{0}", '{{"{0}": ["{0}"]}}',
    "hard: [{{never: a, words: [b], {0}: c}}]\n",
)  # fmt: skip


def test_no_peer_reads_a_file_or_stops_a_node_by_a_parameter(
    file_folder: Path, node: NodeProcess, observer: Observer, tmp_path: Path
) -> None:
    """Content shows in no answer, log or status, and a pipe that nobody writes to holds nothing up."""
    statuses = observer.watch_status()
    secret, outside = file_folder / "secret.yaml", tmp_path / "outside.yaml"
    outside.write_text("hard: []\n")
    os.mkfifo(pipe := file_folder / "pipe.yaml")
    (link := file_folder / "link.yaml").symlink_to(outside)
    for path in (outside, link, file_folder / "../outside.yaml", Path("/etc/shadow")):
        assert "lies in no folder" in observer.set_parameter("selector", "house_rules", str(path)), path
    for text in SECRETS:
        secret.write_text(text.format(SECRET))
        refused = observer.set_parameter("selector", "house_rules", str(secret))
        assert refused == "house_rules: the file is not usable; the log of selector says why", text
    for path in (pipe, file_folder, Path("/dev/zero")):
        assert observer.set_parameter("selector", "skills", str(path)), path
    before = len(statuses)
    observer.until(lambda: len(statuses) > before + 1, "two heartbeats")
    assert "is not a regular file" in node.last_output()
    assert SECRET not in "\n".join(node.output)
    assert not [reason for status in statuses for reason in status.reasons if SECRET in reason]
