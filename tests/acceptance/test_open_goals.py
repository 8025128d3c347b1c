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

from norm_monitor.replay.node_process import NodeProcess
from tests.norm_core.engines.fake_server import describe_model, serving, stalling
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

EXECUTORS = ("events", "single")
ACTION = "/tactful/select_action"
ROUNDS, GOALS, WAITING = 6, 200, 8


@contextmanager
def undecided_selector(
    executor: str, domain_id: int, own_models: Path, *options: str
) -> Iterator[tuple[NodeProcess, Any]]:
    """A selector whose model never answers, and the server of that model."""
    with serving() as server:
        server.faults.extend([stalling] * 1000)
        describe_model(own_models, "slow", server.url)
        parameters = {"selector": {"model": "slow", "longest_s": 600.0}}
        with NodeProcess(["selector"], parameters, domain_id, options=(*options, "--executor", executor)) as process:
            yield process, server


def client_of(observer: Observer, depth: int = 10) -> Any:
    from norm_interfaces.action import SelectAction
    from rclpy.action import ActionClient
    from rclpy.qos import QoSProfile

    profiles = {f"{service}_service_qos_profile": QoSProfile(depth=depth) for service in ("goal", "result")}
    client = ActionClient(observer.node, SelectAction, ACTION, **profiles)
    observer.until(client.server_is_ready, "the action")
    return client


def are_done(futures: list[Any]) -> bool:
    return all(future.done() for future in futures)


def send(client: Any, **fields: Any) -> Any:
    from norm_interfaces.action import SelectAction

    return client.send_goal_async(SelectAction.Goal(candidates=["Greet.", "Wave."], others_given=True, **fields))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_goals_that_are_open_at_a_reset_are_aborted_and_answered(
    domain_id: int, observer: Observer, own_models: Path, executor: str
) -> None:
    """Clients ask for the result before, during and after, as a manager takes the node down and up again."""
    from action_msgs.msg import GoalStatus
    from norm_interfaces.msg import Outcome

    with undecided_selector(executor, domain_id, own_models) as (process, _):
        for _ in range(ROUNDS):
            assert observer.change_state("selector", label="configure")
            assert observer.change_state("selector", label="activate")
            client = client_of(observer)
            sent = [send(client) for _ in range(4)]
            observer.until(partial(are_done, sent), "the goals to be accepted")
            before, during, between, after = (goal.result() for goal in sent)
            asked = [before.get_result_async(), during.get_result_async()]
            assert observer.change_state("selector", label="deactivate")
            asked.append(between.get_result_async())
            assert observer.change_state("selector", label="cleanup")
            asked.append(after.get_result_async())
            observer.until(partial(are_done, asked), "the results")
            results = [result.result() for result in asked]
            assert {result.status for result in results} == {GoalStatus.STATUS_ABORTED}
            assert {result.result.error_code for result in results} == {Outcome.FAILED}
            assert {result.result.error_msg for result in results} == {"selector: the node is not active; activate it"}
            late = send(client)
            observer.until(late.done, "an answer to a goal after the clean-up")
            assert not late.result().accepted
            client.destroy()
        assert "InvalidHandle" not in process.last_output()


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
            (GoalStatus.STATUS_ABORTED, Outcome.FAILED)
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
