"""The reference pages and the shipped parameter file agree."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs/reference/ros_api.md").read_text(encoding="utf-8")
PARAMETERS = (ROOT / "docs/reference/parameters.md").read_text(encoding="utf-8")


def test_the_shipped_parameters_are_the_documented_defaults() -> None:
    shipped: dict[str, Any] = {}
    for file in ("norm_bringup/config/tactful.yaml", "norm_bench/config/stand_ins.yaml"):
        shipped |= yaml.safe_load((ROOT / "ros2_ws/src" / file).read_text(encoding="utf-8"))
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


def documented_nodes() -> list[str]:
    return re.findall(r"^## (/\S+)$", API, re.MULTILINE)


def documented_parameters(node: str) -> dict[str, Any]:
    section = PARAMETERS.split(f"## {node}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| [\w ]+ \| `(.*?)` \|", section, re.MULTILINE)
    return {name: json.loads(default) for name, default in rows}


def test_each_endpoint_states_its_quality_of_service_and_none_the_inside_of_a_node() -> None:
    profile = r"(reliable|best effort), (volatile|transient local), \d+"
    rows = re.findall(r"^\| (?:publisher|subscriber|service server|action server) \|.*$", API, re.MULTILINE)
    odd = [row for row in rows if not re.fullmatch(rf"{profile}(; {profile})?", row.split(" | ")[3])]
    assert [row.split(" | ")[1] for row in odd] == ["`robot_speech_topic`, `robot_speaking_topic`"]
    assert len(rows) > 50
    assert not re.search(r"\b(callbacks?|threads?|queues?|Worker)\b", API)
