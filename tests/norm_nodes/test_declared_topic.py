"""Definitions of installed types: the bag library hashes them as ROS does; a type that cannot be used is named."""

import os
from pathlib import Path

import pytest

from norm_core.bags.types import complete_definition, compute_definition_digest, read_installed_digest

pytestmark = pytest.mark.ros


def installed_types() -> list[str]:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    paths = [path for prefix in prefixes if prefix for path in Path(prefix, "share").glob("*_*/msg/*.json")]
    return sorted(f"{path.parts[-3]}/msg/{path.stem}" for path in paths)


def test_every_installed_class_describes_its_type_exactly() -> None:
    from norm_bench.stand_ins.declared_topic import describe_class

    hashes = {name: read_installed_digest(name) for name in installed_types()}
    assert "sensor_msgs/msg/CameraInfo" in hashes
    assert {
        name: compute_definition_digest(name, complete_definition(name, describe_class)) for name in hashes
    } == hashes


def test_restarted_recorder_avoids_an_unfinished_bag(tmp_path: Path) -> None:
    from norm_bench.stand_ins.bag_recorder import avoid_unfinished

    bag = tmp_path / "bag"
    assert avoid_unfinished(bag) == bag
    for name in ("bag", "bag_2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.mcap").touch()
    assert avoid_unfinished(bag) == tmp_path / "bag_3"
    (tmp_path / "bag_3").mkdir()  # killed before its first byte
    assert avoid_unfinished(bag) == tmp_path / "bag_4"
    (bag / "metadata.yaml").touch()  # it is complete, so it is refused as ever
    assert avoid_unfinished(bag) == bag


@pytest.mark.parametrize(
    ("type_name", "problem"),
    [
        ("std_msgs/msg/Strng", "does not exist in std_msgs; did you mean std_msgs/msg/String?"),
        ("std_msgs/msg/Qqqqq", "does not exist in std_msgs; name a type of std_msgs, or update it"),
        ("bolt_msgs/msg/Say", "is not installed; install bolt_msgs (as ros-jazzy-bolt-msgs)"),
    ],
)
def test_missing_type_names_its_remedy(type_name: str, problem: str) -> None:
    from norm_nodes.base.convert import TypeMissingError, message_class

    with pytest.raises(TypeMissingError) as raised:
        message_class(type_name)
    assert str(raised.value) == f"{type_name} {problem}"
