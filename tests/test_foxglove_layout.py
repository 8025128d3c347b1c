"""The layout for Foxglove names only topics, fields and constants that Tactful publishes."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from rosbags.interfaces import Nodetype

from norm_core.bags.types import typestore
from tests.markdown_pages import ROOT

LAYOUT = json.loads((ROOT / "docs/foxglove/tactful_layout.json").read_text(encoding="utf-8"))
PANELS: dict[str, Any] = LAYOUT["configById"]
SERIES: list[Any] = [series for panel in PANELS.values() for series in panel.get("paths", [])]
PATHS = sorted(
    {each["value"] for each in SERIES} | {each["topicPath"] for each in PANELS.values() if "topicPath" in each}
)

_TOPIC = re.compile(r"/[a-z_/]+")
_STEP = re.compile(r"\{(?P<filter>\w+)(?:==|!=)(?P<value>[^}]+)\}|\.(?P<field>\w+)(?P<slice>\[:\])?")


def published_types() -> dict[str, str]:
    """The type of each topic, as the generated page of the ROS API tells it."""
    page = (ROOT / "docs/reference/ros_api.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (?:publishes|subscribes) \| `(?P<topic>/\S+)` \| `(?P<type>\S+)` \|", page)
    return dict(rows)


def fields_of(type_name: str) -> dict[str, tuple[Any, Any]]:
    return dict(typestore().fielddefs[type_name][1])


def steps(path: str) -> Iterator[tuple[str, re.Match[str], tuple[Any, Any]]]:
    """The steps of a path: the message type, the step, and the field that it reads."""
    topic = _TOPIC.match(path)
    assert topic
    type_name, rest = published_types()[topic[0]], path[topic.end() :]
    while rest:
        step = _STEP.match(rest)
        assert step, rest
        field = fields_of(type_name)[step["filter"] or step["field"]]
        yield type_name, step, field
        rest = rest[step.end() :]
        if step["field"]:
            nested = field[1][0] if step["slice"] else field
            type_name = str(nested[1]) if nested[0] is Nodetype.NAME else ""


@pytest.mark.parametrize("path", PATHS)
def test_each_path_leads_to_a_published_field(path: str) -> None:
    for _, step, (node, _) in steps(path):
        assert (node in {Nodetype.ARRAY, Nodetype.SEQUENCE}) == bool(step["slice"])
