"""Each goal of an action gets its answer: in a burst, and where the node is stopped, cleaned up or ended."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from tests.norm_core.engines.fake_server import describe_model, serving, stalling
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

EXECUTORS = ("events", "single")
GOALS, WAITING = 200, 8


@contextmanager
def undecided_selector(
    executor: str, domain_id: int, own_models: Path, *options: str, **parameters: Any
) -> Iterator[tuple[NodeProcess, Any]]:
    """A selector whose model never answers, and the server of that model."""
    with serving() as server:
        server.faults.extend([stalling] * 1000)
        describe_model(own_models, "slow", server.url)
        own = {"selector": {"model": "slow", "longest_s": 600.0, **parameters}}
        with NodeProcess(["selector"], own, domain_id, options=(*options, "--executor", executor)) as process:
            yield process, server


def client_of(observer: Observer, depth: int = 10, node: str = "selector") -> Any:
    from norm_interfaces.action import CheckUtterance, SelectAction
    from rclpy.action import ActionClient
    from rclpy.qos import QoSProfile

    type_, name = {"selector": (SelectAction, "select_action"), "monitor": (CheckUtterance, "check_utterance")}[node]
    profiles = {f"{service}_service_qos_profile": QoSProfile(depth=depth) for service in ("goal", "result")}
    client = ActionClient(observer.node, type_, f"/tactful/{name}", **profiles)
    observer.until(client.server_is_ready, "the action")
    return client


def are_done(futures: list[Any]) -> bool:
    return all(future.done() for future in futures)


def send(client: Any, **fields: Any) -> Any:
    from norm_interfaces.action import CheckUtterance, SelectAction

    if client._action_type is CheckUtterance:  # noqa: SLF001
        return client.send_goal_async(CheckUtterance.Goal(text="Hello.", **fields))
    return client.send_goal_async(SelectAction.Goal(candidates=["Greet.", "Wave."], others_given=True, **fields))


def reason_of(result: Any) -> str:
    return str(result.error_msg)


# A host whose monitor reads no text that it checks before a file is gone.
BUSY_CHECKS = """
import sys, time
from pathlib import Path
from norm_monitor.utterance_check import UtteranceCheck
from norm_nodes import node_host

def check(*_):
    while Path(__file__).with_name("busy").exists():
        time.sleep(0.05)
    raise LookupError("unread")

UtteranceCheck.check = check
sys.exit(node_host.main(sys.argv[1:]))
"""


@contextmanager
def unread_monitor(
    executor: str, domain_id: int, folder: Path, *options: str, **parameters: Any
) -> Iterator[tuple[NodeProcess, Any]]:
    """A monitor that never has checked an utterance."""
    (program := folder / "busy_checks.py").write_text(BUSY_CHECKS)
    (busy := folder / "busy").touch()
    own = {"monitor": {"reader": "none", "judge.deadline_s": 0.1, **parameters}}
    options = (*options, "--executor", executor)
    with NodeProcess(["monitor"], own, domain_id, options=options, program=(str(program),)) as process:
        try:
            yield process, None
        finally:
            busy.unlink()


SERVERS = pytest.mark.parametrize(
    ("node", "serving_node"), [("selector", undecided_selector), ("monitor", unread_monitor)]
)


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("executor", EXECUTORS)
@SERVERS
def test_goals_that_are_open_at_a_reset_are_aborted_and_answered(  # noqa: PLR0917
    domain_id: int, observer: Observer, own_models: Path, executor: str, node: str, serving_node: Any, rounds: int
) -> None:
    """Clients ask for the result before, during and after, as a manager takes the node down and up again."""
    from action_msgs.msg import GoalStatus

    with serving_node(executor, domain_id, own_models) as (process, _):
        for _ in range(rounds):
            assert observer.change_state(node, label="configure")
            assert observer.change_state(node, label="activate")
            client = client_of(observer, node=node)
            sent = [send(client) for _ in range(4)]
            observer.until(partial(are_done, sent), "the goals to be accepted")
            before, during, between, after = (goal.result() for goal in sent)
            asked = [before.get_result_async()]
            racing = [during.get_result_async(), *(send(client) for _ in range(4))]
            assert observer.change_state(node, label="deactivate")
            inactive = send(client)
            asked.append(between.get_result_async())
            observer.until(partial(are_done, [inactive, *racing]), "the goals that arrived meanwhile to be accepted")
            asked += [racing[0], *(goal.result().get_result_async() for goal in [inactive, *racing[1:]])]
            assert observer.change_state(node, label="cleanup")
            asked.append(after.get_result_async())
            observer.until(partial(are_done, asked), "the results")
            results = [result.result() for result in asked]
            assert {result.status for result in results} == {GoalStatus.STATUS_ABORTED}
            assert {reason_of(result.result) for result in results} == {f"{node}: the node is not active; activate it"}
            late = send(client)
            observer.until(late.done, "an answer to a goal after the clean-up")
            assert not late.result().accepted
            client.destroy()
        assert "InvalidHandle" not in process.last_output()


# A host with rclpy from 7.1.10 on: goal handles take the result, and set an empty one without; none is set twice.
NEWER_RCLPY = """
import sys
from rclpy.action.server import ServerGoalHandle
from rclpy.task import Future
from norm_nodes import node_host

def extend(change_state):
    def end(handle, response=None):
        change_state(handle)
        server = handle._action_server
        answer = server.action_type.Impl.GetResultService.Response(status=handle.status)
        answer.result = response or server.action_type.Result()
        server._result_futures[bytes(handle.goal_id.uuid)].set_result(answer)
    return end

set_result = Future.set_result
Future.set_result = lambda future, result: future.done() or set_result(future, result)
for name in ("succeed", "abort", "canceled"):
    setattr(ServerGoalHandle, name, extend(getattr(ServerGoalHandle, name)))
sys.exit(node_host.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_result_is_whole_where_rclpy_sends_one_by_itself(
    domain_id: int, observer: Observer, executor: str, tmp_path: Path
) -> None:
    (program := tmp_path / "newer_rclpy.py").write_text(NEWER_RCLPY)
    with NodeProcess(["selector"], {}, domain_id, options=("--executor", executor), program=(str(program),)):
        assert observer.change_state("selector", label="configure")
        client = client_of(observer)
        sent = send(client)
        observer.until(sent.done, "the goal to be accepted")
        asked = sent.result().get_result_async()
        observer.until(asked.done, "the result")
        assert reason_of(asked.result().result) == "selector: the node is not active; activate it"


def test_a_node_that_rclpy_has_changed_under_says_so_and_is_not_started_again(domain_id: int, tmp_path: Path) -> None:
    program = tmp_path / "changed_rclpy.py"
    program.write_text(
        "import sys\nfrom rclpy.task import Future\nfrom norm_nodes import node_host\n"
        "del Future._set_executor\nFuture.__init__ = lambda self, **_: None\nFuture.__del__ = lambda self: None\n"
        "sys.exit(node_host.main(sys.argv[1:]))\n"
    )
    with pytest.raises(NodeProcessError, match="rclpy: Future has no _set_executor in this version; install one"):
        NodeProcess(["selector"], {}, domain_id, ("--autostart",), program=(str(program),)).__enter__()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_each_goal_of_a_burst_is_answered_and_the_open_ones_end_with_the_process(
    domain_id: int, observer: Observer, own_models: Path, executor: str
) -> None:
    """One is decided and eight wait; the others are refused. Of the nine, some are cancelled, and some see the end."""
    from action_msgs.msg import GoalStatus
    from norm_interfaces.msg import Outcome

    with undecided_selector(executor, domain_id, own_models, "--autostart") as (process, server):
        observer.watch_status()
        client = client_of(observer, depth=GOALS)
        first = send(client)
        observer.until(server.reached.is_set, "the model to be asked")
        sent = [first, *(send(client) for _ in range(GOALS - 1))]
        observer.until(partial(are_done, sent), "an answer to each goal")
        handles = [goal.result() for goal in sent]
        assert all(handle.accepted for handle in handles)
        asked = [handle.get_result_async() for handle in handles]
        observer.until(lambda: sum(result.done() for result in asked) == GOALS - WAITING - 1, "the refusals")
        refused = [result.result() for result in asked if result.done()]
        assert {(result.status, result.result.error_code) for result in refused} == {
            (GoalStatus.STATUS_ABORTED, Outcome.BUSY)
        }
        assert all("8 questions wait already" in result.result.error_msg for result in refused)
        undecided = [number for number, result in enumerate(asked) if not result.done()]
        cancelled, ended = undecided[:5], undecided[5:]
        for number in cancelled:
            handles[number].cancel_goal_async()
        observer.until(partial(are_done, [asked[number] for number in cancelled]), "the cancelled goals to end")
        observer.until(lambda: observer.counted("decisions_cancelled") == len(cancelled), "their count")
        os.kill(process.pid, signal.SIGTERM)
        observer.until(partial(are_done, [asked[number] for number in ended]), "the last goals to end")
        assert process.wait(PATIENCE_S) == 0
    assert not observer.counted("decisions_timed_out")
    ends = Counter(
        (result.result().status, result.result().result.error_code)
        for number, result in enumerate(asked)
        if number in undecided
    )
    assert ends == {
        (GoalStatus.STATUS_CANCELED, Outcome.CANCELLED): len(cancelled),
        (GoalStatus.STATUS_ABORTED, Outcome.FAILED): len(ended),
    }


@pytest.mark.parametrize("executor", EXECUTORS)
def test_each_call_of_a_burst_is_answered(domain_id: int, observer: Observer, own_models: Path, executor: str) -> None:
    """One utterance is read and eight wait; the other calls are refused, and these are answered at the end."""
    from norm_interfaces.msg import Outcome
    from norm_interfaces.srv import CheckUtterance, Explain
    from rclpy.qos import QoSProfile

    def call(type_: Any, name: str, **fields: Any) -> list[Any]:
        client = observer.node.create_client(type_, f"/tactful/{name}", qos_profile=QoSProfile(depth=GOALS))
        observer.until(client.service_is_ready, name)
        return [client.call_async(type_.Request(**fields)) for _ in range(GOALS)]

    with unread_monitor(executor, domain_id, own_models, "--autostart"):
        observer.meet("monitor")
        explained = call(Explain, "explain", event_id="none")
        observer.until(partial(are_done, explained), "each explanation")
        checked = call(CheckUtterance, "check_utterance", text="Hello.")
        observer.until(lambda: sum(check.done() for check in checked) >= GOALS - WAITING - 1, "the refusals")
        assert observer.change_state("monitor", label="deactivate")
        observer.until(partial(are_done, checked), "an answer to each call")
    assert {(check.result().error_code, check.result().error_msg) for check in checked} == {
        (Outcome.BUSY, "monitor: 8 utterances wait already; ask less often"),
        (Outcome.FAILED, "monitor: the node is not active; activate it"),
    }


@SERVERS
def test_a_goal_ends_at_its_deadline_by_the_clock_of_the_node(
    domain_id: int, observer: Observer, own_models: Path, node: str, serving_node: Any
) -> None:
    """Simulated time stands until the test sets it. The first goal is answered no more than the one that waits."""
    from action_msgs.msg import GoalStatus
    from builtin_interfaces.msg import Time
    from rosgraph_msgs.msg import Clock

    clock = observer.node.create_publisher(Clock, "/clock", 1)

    def publish_until(condition: Any, what: str, sec: int) -> None:
        def is_met() -> Any:
            clock.publish(Clock(clock=Time(sec=sec)))
            return condition()

        observer.until(is_met, what)

    statuses = observer.watch_status()
    with serving_node("events", domain_id, own_models, "--autostart", use_sim_time=True):
        publish_until(lambda: statuses and statuses[-1].stamp_ns == 1000 * 10**9, "simulated time", 1000)
        client = client_of(observer, node=node)
        sent = [send(client, deadline=Time(sec=sec)) for sec in (9000, 5000)]
        observer.until(partial(are_done, sent), "the goals to be accepted")
        first, second = (goal.result().get_result_async() for goal in sent)
        publish_until(second.done, "the goal that waits to end", 5001)
        assert not first.done()
        publish_until(first.done, "the first goal to end", 9001)
    assert {result.result().status for result in (first, second)} == {GoalStatus.STATUS_ABORTED}
    assert all("deadline" in reason_of(result.result().result) for result in (first, second))
