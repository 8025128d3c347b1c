"""`./tactful up` from outside: flags come, what is killed comes back, and Ctrl-C leaves nothing."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import SocialFlag
from norm_core.records.speech import RobotSpeech
from norm_core.records.status import MonitorStatus, NodeState
from tests.acceptance.tactful_up import running_up
from tests.observer import Observer

pytestmark = pytest.mark.ros

ACTIVE = "all nodes are active"


def flags(observer: Observer) -> list[object]:

    return observer.records(SocialFlag, "flags")


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_killed_node_comes_back_and_flags_go_on(tmp_path: Path, observer: Observer) -> None:
    seen = flags(observer)
    with running_up(tmp_path / "log", "simulated") as up:
        up.wait_for(ACTIVE)
        observer.until(lambda: seen, "a flag before")
        killed = up.pid_of("monitor")
        os.kill(killed, signal.SIGKILL)
        assert "SIGKILL; restart 1 now" in up.wait_for("monitor, selector: was ended")
        up.wait_for("monitor: is active again, after 1 restart")
        up.wait_for(ACTIVE, times=2)
        assert up.pid_of("monitor") != killed
        seen.clear()
        observer.until(lambda: seen, "a flag after")
        assert up.interrupt() == 0
        up.wait_for("all nodes have ended")


def test_a_node_that_starts_again_keeps_what_was_set_of_it(tmp_path: Path, observer: Observer) -> None:
    statuses = observer.watch_status()
    profile = written(tmp_path / "robot.yaml", "/tactful/monitor:\n  ros__parameters: {fusion: {sensitivity: quiet}}\n")

    def notes(instance: str = "") -> str:
        last = next((one for one in reversed(statuses) if one.node.endswith("/monitor")), None)
        return " ".join(last.notes) if last and last.instance_id != instance else ""

    with running_up(tmp_path / "log", profile) as up:
        up.wait_for(ACTIVE)
        assert observer.set_parameter("monitor", "fusion.sensitivity", "keen") == ""
        observer.until(lambda: "keen" in notes(), "the new sensitivity")
        crashed = statuses[-1].instance_id
        os.kill(up.pid_of("monitor"), signal.SIGKILL)
        kept = up.wait_for('monitor: keeps fusion.sensitivity "keen"')
        assert f"write it into {profile}" in kept
        up.wait_for("monitor: is active again, after 1 restart")
        observer.until(lambda: "keen" in notes(crashed), "the sensitivity of the new monitor")
        assert up.interrupt() == 0


def test_a_node_that_cannot_be_configured_stops_no_other(tmp_path: Path, observer: Observer) -> None:
    profile = """
/tactful/monitor:
  ros__parameters: {thresholds: /nowhere/cues.yaml}
/tactful/camera:
  ros__parameters: {topic: /eye/compressed}
"""
    statuses = observer.watch_status()
    with running_up(tmp_path / "log", written(tmp_path / "robot.yaml", profile)) as up:
        assert "/nowhere/cues.yaml" in up.wait_for("monitor: /tactful/monitor did not start")
        up.wait_for("1 of 2 nodes are active")
        observer.until(lambda: any(s.node == "/tactful/camera" and s.state is NodeState.ACTIVE for s in statuses), "it")
        assert up.interrupt() == 0


def test_up_ends_where_no_node_can_be_configured(tmp_path: Path, domain_id: int) -> None:
    profile = "/tactful/montior:\n  ros__parameters: {}\n"
    with running_up(tmp_path / "log", written(tmp_path / "robot.yaml", profile)) as up:
        up.wait_for("did you mean monitor?")
        assert up.wait() == 2


def test_a_second_up_leaves_the_first_alone(tmp_path: Path, domain_id: int) -> None:
    profile = written(tmp_path / "robot.yaml", "/tactful/selector:\n  ros__parameters: {}\n")
    with running_up(tmp_path / "first.log", profile) as first:
        first.wait_for(ACTIVE)
        with running_up(tmp_path / "second.log", profile) as second:
            second.wait_for("already running in /tactful on this ROS domain: selector; end what started them")
            assert second.wait() == 4
        assert not [line for line in second.lines if "Starting" in line]
        assert not [line for line in first.lines if "inactive" in line]
        assert first.interrupt() == 0


def test_a_robot_without_a_camera_gets_a_decision(tmp_path: Path, observer: Observer) -> None:
    from norm_interfaces.action import SelectAction
    from rclpy.action import ActionClient

    profile = written(tmp_path / "robot.yaml", "/tactful/selector:\n  ros__parameters: {}\n")
    actions = ["Tell the customer the opening hours.", "Tell the customer what the jacket costs."]
    with running_up(tmp_path / "log", profile) as up:
        up.wait_for(ACTIVE)
        client = ActionClient(observer.node, SelectAction, "/tactful/select_action")
        observer.until(client.server_is_ready, "the action")
        goal = SelectAction.Goal(candidates=actions, situation="A customer asks what the blue jacket costs.")
        sent = client.send_goal_async(goal)
        observer.until(sent.done, "the goal to be accepted")
        result = sent.result().get_result_async()
        observer.until(result.done, "a decision")
        decision = result.result().result.decision
        assert decision.chosen == actions[1]
        assert decision.explanation.startswith("Nothing was seen, as no camera is set up: ")
        client.destroy()
        assert up.interrupt() == 0


def misses_pictures(statuses: list[Any]) -> bool:
    return any("no image" in reason for status in statuses for reason in status.reasons)


def test_two_robots_share_a_domain_by_namespaces(tmp_path: Path, observer: Observer) -> None:
    from norm_nodes.base.convert import record_class
    from norm_nodes.base.endpoint import STATUS_QOS

    profile = written(tmp_path / "robot.yaml", "/tactful/camera:\n  ros__parameters: {topic: /eye/compressed}\n")
    robots = ("left", "right")
    statuses = {
        robot: observer.collect(record_class(MonitorStatus), f"/{robot}/tactful/status", STATUS_QOS) for robot in robots
    }
    with (
        running_up(tmp_path / "left.log", profile, "--namespace", "left") as left,
        running_up(tmp_path / "right.log", profile, "--namespace", "right") as right,
    ):
        left.wait_for(ACTIVE)
        right.wait_for(ACTIVE)
        for robot in robots:
            observer.until(partial(misses_pictures, statuses[robot]), f"a camera of {robot} that misses its pictures")
            assert {status.node for status in statuses[robot]} == {f"/{robot}/tactful/camera"}
            topic = f"/{robot}/eye/compressed"
            observer.until(partial(observer.node.count_subscribers, topic), f"a subscription to {topic}")
        told = {reason for robot in robots for status in statuses[robot] for reason in status.reasons}
        assert not any("another node of this name" in reason for reason in told)
        assert (left.interrupt(), right.interrupt()) == (0, 0)


def test_words_that_are_typed_are_the_robots(tmp_path: Path, observer: Observer) -> None:

    said = observer.records(RobotSpeech, "robot_speech")
    with running_up(tmp_path / "log", "laptop") as up:
        up.wait_for(ACTIVE)
        observer.until(partial(observer.node.count_publishers, "/tactful/robot_speech"), "ears")
        observer.until(partial(observer.node.count_subscribers, "/typed_robot/says"), "who reads what is typed")
        up.type("Hello, how can I help you?")
        observer.until(lambda: said, "the robot's speech")
        assert said[0].text == "Hello, how can I help you?"
        assert up.interrupt() == 0
