"""The launch file on the shipped parameter file, and a robot's publishers beside it: a flag comes.

It needs launch and launch_ros, which are not among the wheels; their sources on PYTHONPATH will do.
"""

import json
import os
import re
import signal
from pathlib import Path

import pytest
import yaml

from norm_core.bags.reader import BagReader
from norm_monitor.encounters.library import HERE
from tests.acceptance.playback import play
from tests.launched import launched
from tests.observer import Observer

pytestmark = [pytest.mark.ros, pytest.mark.launch]

NODES = ["camera", "monitor"]
BAG = HERE / "shipped/zh_teahouse"


def test_a_launched_robot_flags_what_is_published(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from lifecycle_msgs.srv import GetState
    from std_msgs.msg import String

    flags = observer.collect(String, "/tactful/flags_json", 1000)
    with BagReader(BAG) as reader:
        topics = [topic.topic for topic in reader.topics]
        first_ns, last_ns = reader.bounds_ns or (0, 0)
    with launched(NODES):
        for node in NODES:
            assert observer.call(GetState, f"/tactful/{node}/get_state").current_state.label == "active"
        observer.meet("monitor")
        play(BAG, topics, tmp_path)
        observer.until(lambda: flags, "a flag")
    flag = json.loads(flags[0].data)
    assert flag["attributes"]
    assert first_ns <= flag["onset_ns"] <= last_ns
    assert flag["provenance"]["window_digest"]


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
    """A killed camera is started again; a recorder whose folder has something in it is not."""
    (tmp_path / "notes.txt").touch()
    statuses = observer.watch_status()
    started = r"\[host-\d\]: process started with pid \[(\d+)\]"
    with launched(["camera"], "respawn:=true", f"bag:={tmp_path}", "nodes:=camera,bag_recorder") as lines:
        observer.meet("camera")
        first = statuses[-1].instance_id
        os.kill(int(re.findall(started, "".join(lines))[0]), signal.SIGKILL)
        observer.until(lambda: statuses[-1].instance_id != first, "the camera to start again")
    assert len(re.findall(started, "".join(lines))) == 3
    assert "exit code 2" in "".join(lines)


def test_a_launch_below_a_namespace_leaves_no_file(
    domain_id: int, observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rcl_interfaces.srv import GetParameters

    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with launched(["bag_recorder"], f"bag:={tmp_path}/12", "use_sim_time:=true", given="/second"):
        service, names = "/second/tactful/bag_recorder/get_parameters", ["bag", "use_sim_time"]
        bag, clock = observer.call(GetParameters, service, names=names).values
        assert (bag.string_value, clock.bool_value) == (f"{tmp_path}/12", True)
    assert list(temporary.iterdir()) == []
