"""The shipped parameter file, copied as the docs tell, starts every node that it names."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.foreign_bag import Maker, write
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

SRC = Path(__file__).parents[2] / "ros2_ws/src"
SHIPPED = (SRC / "norm_bringup/config/tactful.yaml", SRC / "norm_bench/config/stand_ins.yaml")
PREFIX = "/tactful/"


@contextmanager
def waiting_nodes(names: list[str], file: Path) -> Iterator[subprocess.Popen[str]]:
    """A node host with a parameter file, once its nodes are there; it must end clean on SIGINT."""
    command = [sys.executable, "-m", "norm_nodes.node_host", *names, "--ros-args", "--params-file", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("waiting "):
                break
        assert "".join(lines[-1:]).startswith("waiting "), "".join(lines)
        yield process
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, "".join(lines) + rest
    finally:
        process.kill()
        process.communicate()


def parameter(observer: Observer, node: str, name: str) -> Any:
    from rcl_interfaces.srv import GetParameters
    from rclpy.parameter import parameter_value_to_python

    (value,) = observer.call(GetParameters, f"{PREFIX}{node}/get_parameters", names=[name]).values
    return parameter_value_to_python(value)


def empty_lists(section: dict[str, Any]) -> Iterator[str]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in empty_lists(value))
        elif value == []:
            yield name


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda file: file.stem)
def test_every_node_starts_from_a_copy_of_the_shipped_file(
    domain_id: int, observer: Observer, tmp_path: Path, shipped: Path
) -> None:
    from lifecycle_msgs.msg import Transition

    text = shipped.read_text(encoding="utf-8")
    tree = yaml.safe_load(text)
    copy = tmp_path / "my_robot.yaml"
    for node in ("bag_player", "bag_recorder"):  # a bag is all that the file cannot name
        head = f"{PREFIX}{node}:\n  ros__parameters:\n    bag: "
        assert (head in text) == (f"{PREFIX}{node}" in tree)
        text = text.replace(f'{head}""', f"{head}{tmp_path / node}")
    copy.write_text(text, encoding="utf-8")
    write(tmp_path / "bag_player", Maker({}), [])
    names = [name.removeprefix(PREFIX) for name in tree]
    empty = [(name, key) for name in names for key in empty_lists(tree[PREFIX + name]["ros__parameters"])]
    assert {("monitor", "fusion.min_probability"), ("monitor", "fusion.muted")} <= set(empty) or "monitor" not in names
    with waiting_nodes(names, copy):
        assert [parameter(observer, *place) for place in empty] == [[]] * len(empty)
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            assert [name for name in names if not observer.change_state(name, id=transition)] == []
        topics = [topic for topic, _ in observer.node.get_topic_names_and_types()]
        assert f"{PREFIX}status" in topics
        assert [topic for topic in topics if "drain" in topic] == []  # those are for replays


def test_a_section_that_misses_its_node_is_in_the_status(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    file = tmp_path / "my_robot.yaml"
    file.write_text("monitor:\n  ros__parameters: {shadow: true}\n", encoding="utf-8")
    statuses = observer.watch_status()
    with waiting_nodes(["monitor"], file):
        observer.until(lambda: statuses, "a heartbeat")
        assert statuses[0].reasons == (
            f"{file}: the section /monitor matches no node, so it has no effect; did you mean /tactful/monitor? "
            "If it belongs to another package, give /tactful/monitor a section of its own",
        )


def test_a_file_for_all_nodes_of_a_robot_ends_none(domain_id: int, observer: Observer, tmp_path: Path) -> None:
    """It names parameters of other packages; a section of our own node is strict as before."""
    file = tmp_path / "robot.yaml"
    wide = {"use_sim_time": True, "robot_name": "x"}
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": wide}}), encoding="utf-8")
    with waiting_nodes(["camera", "selector"], file):
        assert parameter(observer, "camera", "use_sim_time") is True
    own = {f"{PREFIX}camera": {"ros__parameters": {"robot_name": "x"}}}
    file.write_text(yaml.safe_dump(own | {"/**": {"ros__parameters": wide}}), encoding="utf-8")
    command = [sys.executable, "-m", "norm_nodes.node_host", "camera", "--ros-args", "--params-file", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert "robot_name" in ended.stderr
