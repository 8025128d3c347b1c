"""Sections of a parameter file that match no node are told with the node that they probably mean."""

from pathlib import Path

import pytest

NAMES = ("camera", "ears", "monitor", "selector")


def complaints(tmp_path: Path, text: str, namespace: str = "/tactful") -> dict[str, list[str]]:
    """What is told where the monitor and the ears are started on a file."""
    from norm_nodes.base.parameter_sections import find_misplaced_sections

    file = tmp_path / "robot.yaml"
    file.write_text(text, encoding="utf-8")
    siblings = [f"{namespace}/{name}" for name in NAMES]
    return find_misplaced_sections([file], [f"{namespace}/monitor", f"{namespace}/ears"], siblings)


def section(*names: str) -> str:
    return "".join(f"{name}:\n  ros__parameters: {{shadow: true}}\n" for name in names)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (section("/tactful/monitr"), "/tactful/monitr"),
        (section("monitor"), "/monitor"),
        (section("/robot/monitor"), "/robot/monitor"),
        ("tactful:\n  moniter:\n    ros__parameters: {shadow: true}\n", "/tactful/moniter"),
    ],
)
def test_the_node_that_a_section_misses_is_named(tmp_path: Path, text: str, named: str) -> None:
    ((node, (complaint,)),) = complaints(tmp_path, text).items()
    assert node == "/tactful/monitor"
    assert f"robot.yaml: the section {named} matches no node" in complaint
    assert "did you mean /tactful/monitor?" in complaint


def test_a_file_for_another_namespace_is_named(tmp_path: Path) -> None:
    nodes = complaints(tmp_path, section("/tactful/monitor", "/tactful/ears"), namespace="/pepper")
    assert sorted(nodes) == ["/pepper/ears", "/pepper/monitor"]


@pytest.mark.parametrize(
    "text",
    [
        section("/tactful/monitor", "/tactful/ears", "/tactful/camera"),
        section("/**"),
        section("/tactful/*"),
        section("/**/monitor"),
        section("tactful/monitor"),
        section("/navigation/planner", "/head_camera"),
        section("/tactful/monitor", "/other_robot/monitor"),
        "",
    ],
)
def test_sections_that_match_or_belong_to_others_are_not_named(tmp_path: Path, text: str) -> None:
    assert complaints(tmp_path, text) == {}


@pytest.mark.parametrize(
    ("name", "warned"),
    [
        ("fusion.sensitivty", "/**: fusion.sensitivty: no node has this parameter; did you mean fusion.sensitivity?"),
        ("robot_name", ""),
        ("stamp_offset", "/**: stamp_offset: no node has this parameter; did you mean stamp_offset_ms?"),
        ("stale_after_s", ""),
    ],
)
def test_a_mistyped_robot_wide_parameter_is_named(name: str, warned: str) -> None:
    from norm_nodes.catalogue import find_mistyped, import_config_model

    assert find_mistyped([name], [import_config_model("monitor"), import_config_model("camera")]) == [warned] * bool(
        warned
    )


def test_a_robot_wide_parameter_may_also_stand_with_another_node(tmp_path: Path) -> None:
    from norm_nodes.base.parameter_sections import find_robot_wide_parameters

    file = tmp_path / "robot.yaml"
    file.write_text(f"{section('/**')}{section('/tactful/monitor')}", encoding="utf-8")
    assert find_robot_wide_parameters([file], ["ears"]) == {"shadow"}
    assert find_robot_wide_parameters([file], ["monitor"]) == set()
