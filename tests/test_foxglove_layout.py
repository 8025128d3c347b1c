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


def constants(type_name: str, field: str) -> dict[str, str]:
    """What the numbers of a field mean."""
    prefix = f"{field.upper()}_"
    return {
        str(value): name.removeprefix(prefix).lower()
        for name, _, value in typestore().fielddefs[type_name][0]
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("path", PATHS)
def test_each_path_leads_to_a_published_field(path: str) -> None:
    for _, step, (node, _) in steps(path):
        assert (node in {Nodetype.ARRAY, Nodetype.SEQUENCE}) == bool(step["slice"])


@pytest.mark.parametrize("path", [path for path in PATHS if "{" in path])
def test_each_filter_compares_with_a_value_of_its_type(path: str) -> None:
    for type_name, step, (_, (base, _)) in (each for each in steps(path) if each[1]["filter"]):
        value, known = step["value"], constants(type_name, step["filter"])
        assert value in known if known else (value[0] == '"') == (base == "string")


@pytest.mark.parametrize("series", [each for each in SERIES if "customStates" in each], ids=lambda each: each["label"])
def test_each_state_has_the_label_of_its_constant(series: dict[str, Any]) -> None:
    *_, (type_name, step, (_, (base, _))) = steps(series["value"])
    states = {state["value"]: state["label"] for state in series["customStates"]["states"]}
    expected = {"true": "yes", "false": "no"} if base == "bool" else constants(type_name, step["field"])
    assert states == expected
