"""What bloom and rosdep need of a package: its own folder, and all that is imported, by names that rosdep knows."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from catkin_pkg.changelog import CHANGELOG_FILENAME, get_changelog_from_path
from catkin_pkg.package import parse_package
from catkin_pkg.packages import find_packages

from norm_core import __version__

SRC = Path(__file__).resolve().parents[1] / "ros2_ws/src"
PACKAGES = sorted(path.parent for path in SRC.glob("*/package.xml"))
OURS = {path.name for path in PACKAGES}

# Found for Ubuntu 24.04 and Jazzy in github.com/ros/rosdistro at commit 8468e88 of 2026-08-22. By it, bloom-generate
# 0.14.4 made the debian folder of every package, for Jazzy and Kilted (2026-11-30; our names as further keys).
ROSDEP_KEYS = set(
    """
    action_msgs ament_cmake ament_cmake_cpplint ament_cmake_flake8 ament_cmake_gtest ament_cmake_lint_cmake
    ament_cmake_python ament_cmake_ros ament_cmake_uncrustify ament_cmake_xmllint ament_index_python ament_lint_auto
    behaviortree_cpp bond builtin_interfaces diagnostic_msgs hri_msgs launch launch_ros launch_testing
    launch_testing_ament_cmake launch_testing_ros lifecycle_msgs python3-numpy python3-yaml rcl_interfaces rclcpp
    rclcpp_action rclpy
    rosidl_default_generators rosgraph_msgs rosidl_default_runtime rosidl_parser sensor_msgs std_msgs std_srvs tf2_msgs
    """.split()  # noqa: SIM905
)


def declared(package: Path) -> set[str]:
    """Every name in a tag whose own name ends in `depend`."""
    root = ElementTree.parse(package / "package.xml").getroot()
    return {str(tag.text) for tag in root if tag.tag.endswith("depend")}


def imported(package: Path) -> Iterator[str]:
    """Every top-level name that the package's Python files import."""
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.split(".")[0]


def named(package: Path) -> Iterator[str]:
    """Every package of a message type that a string names: such a type is loaded by its name."""
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(r"^([a-z]\w*)/(?:msg|srv|action)/\w+$", node.value)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_rosdep_finds_each_package_once_in_a_clone(tmp_path: Path) -> None:
    """rosdep crawls with this finder, which follows links and raises where two packages share a name."""
    root = SRC.parents[1]
    every = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, every.split("\0")):
        target = tmp_path / "src/tactful" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target, follow_symlinks=False)
    assert {package.name for package in find_packages(str(tmp_path / "src")).values()} == OURS


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_bloom_finds_all_of_a_package_in_its_own_folder(package: Path) -> None:
    """A release branch holds this folder alone, and its build has neither a network nor pip."""
    warnings: list[str] = []
    parsed = parse_package(str(package), warnings=warnings)
    assert not warnings
    assert parsed.version == __version__
    assert parsed.urls
    assert all(license_.file and (package / license_.file).is_file() for license_ in parsed.licenses)
    assert "Forthcoming" in get_changelog_from_path(str(package / CHANGELOG_FILENAME), parsed.name).rst
    assert not [path for path in package.rglob("*") if path.is_symlink()]
    build = (package / "CMakeLists.txt").read_text(encoding="utf-8")
    assert not re.search(r"\.\./|\bpip\b|CMAKE_CURRENT_LIST_DIR", build)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_tagged_release_names_a_real_address() -> None:
    """rosdistro's reviewers write to the maintainer, and clone the repository."""
    command = ["git", "tag", "--points-at", "HEAD", "--list", "[0-9]*", "v[0-9]*"]
    tags = subprocess.run(command, cwd=SRC, capture_output=True, text=True, check=False).stdout.split()
    invented = [path.name for path in PACKAGES if "example.org" in (path / "package.xml").read_text(encoding="utf-8")]
    assert not (tags and invented), (tags, invented)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_dependency_is_ours_or_a_rosdep_key(package: Path) -> None:
    assert declared(package) - OURS - ROSDEP_KEYS == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_ros_package_that_is_imported_is_declared(package: Path) -> None:
    of_ros = {name for name in imported(package) if name in OURS | ROSDEP_KEYS}
    assert of_ros - {package.name} - declared(package) == set()


def test_every_package_of_a_named_type_is_declared() -> None:
    of_drivers = {"audio_common_msgs", "nav_msgs"}  # whoever publishes these has them
    missing = {package.name: set(named(package)) - declared(package) - of_drivers for package in PACKAGES}
    assert not any(missing.values()), missing
    assert {"bond", "hri_msgs", "tf2_msgs"} <= set(named(SRC / "norm_nodes"))


def test_the_nodes_import_no_ros_package_that_is_unknown_here() -> None:
    """A new import of ROS must be looked up in rosdep's list, and noted above."""
    of_the_wheel = {path.name for path in SRC.parents[1].iterdir() if (path / "__init__.py").is_file()}
    of_its_requirements = {"cv2", "numpy", "pydantic", "pydantic_core", "rosbags", "yaml"}
    known = OURS | ROSDEP_KEYS | of_the_wheel | of_its_requirements | set(sys.stdlib_module_names) | {"pytest"}
    for package in PACKAGES:
        assert set(imported(package)) - known == set()


def test_each_node_of_a_robot_has_a_program_of_its_own() -> None:
    from norm_nodes.catalogue import NODES

    listed = re.search(r"set\(nodes ([^)]*)\)", (SRC / "norm_nodes/CMakeLists.txt").read_text(encoding="utf-8"))
    assert listed
    assert listed[1].split() == sorted(name for name, path in NODES.items() if path.startswith("norm_nodes."))
