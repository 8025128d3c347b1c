"""The launch file, and the functional tests of each package.

They need launch, launch_ros and launch_testing, which are not among the wheels; their sources on PYTHONPATH will do.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from norm_core.bags.reader import BagReader
from norm_monitor.encounters.library import HERE
from tests.acceptance.playback import play
from tests.launched import LAUNCH, launched
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.ros, pytest.mark.launch]

NODES = ["camera", "monitor"]
FUNCTIONAL_TESTS = sorted(LAUNCH.parents[2].glob("*/test/test_*.py"))
BAG = HERE / "shipped/zh_teahouse"


@pytest.mark.parametrize("file", FUNCTIONAL_TESTS, ids=lambda file: file.parts[-3])
def test_each_package_passes_its_functional_test(file: Path, domain_id: int) -> None:
    pytest.importorskip("launch_testing_ros", reason="launch_testing is not among the wheels")
    command = [sys.executable, "-m", "launch_testing.launch_test", str(file)]
    tested = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("file", FUNCTIONAL_TESTS, ids=lambda file: file.parts[-3])
def test_a_functional_test_skips_at_once_without_the_python_package(file: Path, domain_id: int) -> None:
    """A build farm has ROS alone."""
    pytest.importorskip("launch_testing_ros", reason="launch_testing is not among the wheels")
    program = (
        "import sys; sys.modules['norm_core'] = None\n"
        "from launch_testing import launch_test; sys.exit(launch_test.main())"
    )
    command = [sys.executable, "-c", program, str(file)]
    tested = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "has no Python package tactful; install it there with pip" in tested.stdout + tested.stderr
    assert "process started" not in tested.stdout + tested.stderr


def test_a_missing_parameter_file_starts_no_node_on_defaults(domain_id: int) -> None:
    missing = launched(NODES, "params_file:=/nowhere/robot.yaml")
    with pytest.raises(pytest.fail.Exception, match=r"/nowhere/robot.yaml: there is no such file; name one"), missing:
        pass


def test_a_second_robot_in_the_domain_changes_nothing(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    """It runs below a pushed and a given namespace, with a file that sets the robot's own names for every node."""
    from norm_interfaces.msg import MonitorStatus
    from rcl_interfaces.srv import GetParameters
    from std_msgs.msg import String

    tree = {
        "/**": {"ros__parameters": {"robot_name": "second"}},
        "/tactful/camera": {"ros__parameters": {"topic": "/fleet/second/image", "transport": "raw"}},
    }
    file = tmp_path / "second.yaml"
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    flags, others = (observer.collect(String, f"{name}/tactful/flags_json", 1000) for name in ("", "/fleet/second"))
    beats = observer.collect(MonitorStatus, "/fleet/second/tactful/status", 1000)
    with BagReader(BAG) as reader:
        topics = [topic.topic for topic in reader.topics]
    second = launched(NODES, f"params_file:={file}", pushed="/fleet", given="/second")
    with second, launched(NODES):
        (topic,) = observer.call(GetParameters, "/fleet/second/tactful/camera/get_parameters", names=["topic"]).values
        assert topic.string_value == "/fleet/second/image"
        observer.meet("monitor")
        play(BAG, topics, tmp_path)
        observer.until(lambda: flags and beats, "a flag of the first, and a heartbeat of the second")
    assert not others
    assert {beat.node for beat in beats} == {f"/fleet/second/tactful/{node}" for node in NODES}
    assert not any(reason for beat in beats for reason in beat.reasons if "another node of this name" in reason)


def test_a_respawn_stops_where_it_cannot_help(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    """A killed camera is started again; a selector whose catalogue is missing is not."""
    file = tmp_path / "robot.yaml"
    file.write_text("/tactful/selector:\n  ros__parameters: {skills: /nowhere/skills.yaml}\n", encoding="utf-8")
    statuses = observer.watch_status()

    def cameras() -> set[str]:
        return {status.instance_id for status in statuses if status.node == "/tactful/camera"}

    started = r"\[host-\d\]: process started with pid \[(\d+)\]"
    with launched(["camera"], "respawn:=true", f"params_file:={file}", "nodes:=camera,selector") as lines:
        observer.meet("camera")
        os.kill(int(re.findall(started, "".join(lines))[0]), signal.SIGKILL)
        observer.until(lambda: len(cameras()) > 1, "the camera to start again")
    assert len(re.findall(started, "".join(lines))) == 3
    assert "exit code 2" in "".join(lines)


def test_a_launch_below_a_namespace_leaves_no_file(
    domain_id: int, observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rcl_interfaces.srv import GetParameters

    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    file = tmp_path / "robot.yaml"
    file.write_text("/tactful/camera:\n  ros__parameters: {topic: /eye}\n", encoding="utf-8")
    with launched(["camera"], f"params_file:={file}", "use_sim_time:=true", given="/second"):
        service, names = "/second/tactful/camera/get_parameters", ["topic", "use_sim_time"]
        topic, clock = observer.call(GetParameters, service, names=names).values
        assert (topic.string_value, clock.bool_value) == ("/eye", True)
        assert list(temporary.iterdir()) == []  # so none can stay after SIGKILL
