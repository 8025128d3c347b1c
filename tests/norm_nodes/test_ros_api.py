"""The reference pages, the running graph and the shipped parameter file agree."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from norm_core.bags.writer import BagWriter
from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs/reference/ros_api.md").read_text(encoding="utf-8")
PARAMETERS = (ROOT / "docs/reference/parameters.md").read_text(encoding="utf-8")
KINDS = {"publishes": "topics", "subscribes": "topics", "serves": "services", "acts": "actions"}

# What every lifecycle node of rclpy brings, and the page says so once in its head.
STANDARD = re.compile(
    r"/(transition_event|change_state|get_state|get_available_(states|transitions)|get_transition_graph"
    r"|(describe|get|list|set)_parameters(_atomically)?|get_parameter_types|get_type_description)$"
    r"|^/(rosout|parameter_events)$|/_action/"
)


@pytest.fixture
def everything(domain_id: int, observer: Observer, tmp_path: Path) -> Any:
    """Every node of the page, configured, in one process."""
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    BagWriter(tmp_path / "empty").close()
    parameters = {
        "bag_player": {"bag": str(tmp_path / "empty")},
        "bag_recorder": {"bag": str(tmp_path / "new")},
    }
    names = [node.removeprefix("/tactful/") for node in documented_nodes()]
    # Not activated: at the end of its bag the player would leave the graph.
    with NodeProcess(names, parameters, domain_id, options=()):
        for name in names:
            configure = Transition(id=Transition.TRANSITION_CONFIGURE)
            assert observer.call(ChangeState, f"/tactful/{name}/change_state", transition=configure).success
        yield


def test_page_and_graph_name_the_same(everything: None) -> None:
    expected = {"nodes": set(documented_nodes()), **{kind: documented(kind) for kind in set(KINDS.values())}}
    deadline_s = time.monotonic() + PATIENCE_S
    while (seen := running()) != expected and time.monotonic() < deadline_s:
        pass
    assert seen == expected


def test_the_shipped_parameters_are_the_documented_defaults() -> None:
    shipped = yaml.safe_load((ROOT / "ros2_ws/src/norm_bringup/config/tactful.yaml").read_text(encoding="utf-8"))
    assert sorted(shipped) == documented_nodes()
    for node, values in shipped.items():
        assert dict(dotted(values["ros__parameters"])) == documented_parameters(node)


def dotted(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a parameter file, as ROS names it."""
    for name, value in section.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def running() -> dict[str, set[Any]]:
    seen = json.loads(
        subprocess.run([sys.executable, "-m", "norm_nodes.graph_listing"], capture_output=True, check=True).stdout
    )
    named = {
        kind: {(name, type_) for name, types in seen[kind].items() for type_ in types if not STANDARD.search(name)}
        for kind in set(KINDS.values())
    }
    return {"nodes": set(seen["nodes"]) - {"/observer"}, **named}


def documented_nodes() -> list[str]:
    return re.findall(r"^## (/\S+)$", API, re.MULTILINE)


def documented(kind: str) -> set[tuple[str, str]]:
    rows = re.findall(r"^\| (\w+) \| `(/\S+)` \| `(\S+)` \|", API, re.MULTILINE)
    return {(name, type_) for direction, name, type_ in rows if KINDS[direction] == kind}


def documented_parameters(node: str) -> dict[str, Any]:
    section = PARAMETERS.split(f"## {node}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| [\w ]+ \| `(.*?)` \|", section, re.MULTILINE)
    return {name: json.loads(default) for name, default in rows}
