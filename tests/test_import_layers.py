"""Arrows run one way: who may import whom."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NODES = ROOT / "ros2_ws/src/norm_nodes/norm_nodes"
BENCH_NODES = ROOT / "ros2_ws/src/norm_bench/norm_bench"

BELOW_REPLAYS = {"norm_core", "norm_monitor", "action_selector", "study_desk"}
# Each package with those of ours that it may import beside itself.
MAY_IMPORT = {
    ROOT / "norm_core": set(),
    ROOT / "norm_monitor": {"norm_core"},
    ROOT / "action_selector": {"norm_core"},
    ROOT / "study_desk": {"norm_core", "norm_monitor", "action_selector"},
    ROOT / "sim_replays": BELOW_REPLAYS,
    ROOT / "calibration": {*BELOW_REPLAYS, "sim_replays"},
    ROOT / "tactful_cli": {*BELOW_REPLAYS, "sim_replays", "calibration"},
    NODES: {*BELOW_REPLAYS, "norm_interfaces"},
    BENCH_NODES: {"norm_core", "norm_monitor", "action_selector", "sim_replays", "norm_nodes"},
}
OF_ROS = {NODES, BENCH_NODES}
PURE = [folder for folder in MAY_IMPORT if folder not in OF_ROS]
OURS = {folder.name for folder in MAY_IMPORT} | {"norm_bringup", "norm_interfaces", "norm_bench_interfaces"}
ABOUT_THE_CHECKOUT = {ROOT / "tactful_cli" / name for name in ("doctor.py", "extras.py", "tests.py")}
ROS = {
    "rclpy",
    "norm_interfaces",
    "norm_bench_interfaces",
    "std_msgs",
    "sensor_msgs",
    "diagnostic_msgs",
    "lifecycle_msgs",
    "rcl_interfaces",
}


@pytest.mark.parametrize("folder", MAY_IMPORT, ids=lambda folder: folder.name)
def test_no_import_runs_upward(folder: Path) -> None:
    allowed = MAY_IMPORT[folder] | {folder.name}
    wrong = {(path.name, name) for path, name in imports(folder) if name in OURS - allowed}
    assert wrong == set()


@pytest.mark.parametrize("folder", PURE, ids=lambda folder: folder.name)
def test_only_the_nodes_import_ros(folder: Path) -> None:
    assert {(path.name, name) for path, name in imports(folder) if name in ROS} == set()


def test_the_nodes_do_import_ros() -> None:
    """The check above would pass on an empty list of imports; this one would not."""
    assert "rclpy" in {name for _, name in imports(NODES)}


@pytest.mark.parametrize("folder", PURE, ids=lambda folder: folder.name)
def test_no_module_finds_its_files_by_its_own_path(folder: Path) -> None:
    """Shipped data is found by norm_core.runtime.data_files; a few verbs are about the checkout itself."""
    sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    using = {
        path for path, text in sources.items() if "__file__" in text.replace("attach_stub(__name__, __file__)", "")
    }
    assert using <= ABOUT_THE_CHECKOUT


def imports(folder: Path) -> list[tuple[Path, str]]:
    found = []
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found += [(path, alias.name.split(".")[0]) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append((path, node.module.split(".")[0]))
    return found
