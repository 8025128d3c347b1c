"""Arrows run one way: who may import whom."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NODES = ROOT / "ros2_ws/src/norm_nodes/norm_nodes"
BENCH_NODES = ROOT / "ros2_ws/src/norm_bench/norm_bench"

ROBOT = {"norm_core", "norm_monitor", "action_selector", "scoring"}
# Each package with those of ours that it may import beside itself. The robot is the kernel; the parts bench and study
# know nothing of each other; the calibration belongs to the checkout.
MAY_IMPORT = {
    ROOT / "norm_core": set(),
    ROOT / "scoring": {"norm_core"},
    ROOT / "norm_monitor": {"norm_core", "scoring"},
    ROOT / "action_selector": {"norm_core"},
    NODES: {"norm_core", "norm_monitor", "action_selector", "norm_interfaces"},
    ROOT / "tactful_cli": ROBOT,
    ROOT / "sim_replays": {*ROBOT, "tactful_cli"},
    BENCH_NODES: {"norm_core", "norm_monitor", "action_selector", "sim_replays", "norm_nodes"},
    ROOT / "study_desk": {*ROBOT, "tactful_cli"},
    ROOT / "calibration": {*ROBOT, "tactful_cli", "sim_replays", "study_desk"},
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


@pytest.mark.parametrize("part", ["sim_replays", "study_desk", *sorted({*ROBOT, "tactful_cli"})])
def test_each_import_of_another_maker_is_declared(part: str) -> None:
    """A package of the robot in the project's own file, a part in its own as well."""
    bounds: list[str] = []
    for path in (ROOT / "pyproject.toml", ROOT / part / "pyproject.toml"):
        if path.is_file():
            project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
            bounds += [*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
    declared = {re.split(r"[^\w.-]", bound)[0].lower() for bound in bounds}
    makers = packages_distributions()
    foreign = {name for _, name in imports(ROOT / part)} - {*OURS, *sys.stdlib_module_names}
    packages = {name: {maker.lower().replace("_", "-") for maker in makers.get(name, [name])} for name in foreign}
    assert {name for name, names in packages.items() if not declared & names} == set()


def test_models_know_no_engine() -> None:
    """An engine loads what a manifest names; a manifest and its weights can be read without one."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "norm_core/models").glob("*.py")}
    assert {
        name for name, text in texts.items() if re.search(r"^ *(from|import) norm_core\.engines", text, re.M)
    } == set()


@pytest.mark.parametrize("folder", PURE, ids=lambda folder: folder.name)
def test_no_module_finds_its_files_by_its_own_path(folder: Path) -> None:
    """Shipped data is found by norm_core.files.data_files; a few verbs are about the checkout itself."""
    sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    using = {
        path for path, text in sources.items() if "__file__" in text.replace("attach_stub(__name__, __file__)", "")
    }
    assert using <= ABOUT_THE_CHECKOUT


@pytest.mark.parametrize("folder", PURE, ids=lambda folder: folder.name)
def test_no_modules_import_each_other_in_a_circle(folder: Path) -> None:
    """Imports for type checkers alone count too: a reader follows them as well."""
    assert circle_of(modules_below(folder)) == []


@pytest.mark.parametrize("folder", PURE, ids=lambda folder: folder.name)
def test_no_rooms_import_each_other_in_a_circle(folder: Path) -> None:
    """A room is a folder of a package; a module beside the rooms may import them and be imported by them."""
    rooms: dict[str, set[str]] = {}
    for module, below in modules_below(folder).items():
        for other in below:
            room, other_room = (".".join(name.split(".")[:2]) for name in (module, other))
            if room != other_room and all((folder / name.split(".")[1]).is_dir() for name in (room, other_room)):
                rooms.setdefault(room, set()).add(other_room)
    assert circle_of(rooms) == []


def test_the_base_of_the_nodes_imports_no_node() -> None:
    outside = {
        (module, other)
        for module, below in modules_below(NODES).items()
        for other in below
        if module.startswith("norm_nodes.base.") and not other.startswith("norm_nodes.base.")
    }
    assert outside == set()


def modules_below(folder: Path) -> dict[str, set[str]]:
    """Each module of a package with the modules of it that it imports; those of the package's own face are none."""
    paths = {".".join(path.relative_to(folder.parent).with_suffix("").parts): path for path in folder.rglob("*.py")}
    paths = {name: path for name, path in paths.items() if not name.endswith(".__init__")}
    below = {}
    for name, path in paths.items():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        named = {node.module or "" for node in froms}
        named |= {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
        below[name] = named & paths.keys() - {name}
    return below


def circle_of(below: dict[str, set[str]]) -> list[str]:
    """Return the names along one circle, or none."""
    while leaves := {name for name in below if not below[name] & below.keys()}:
        below = {name: names for name, names in below.items() if name not in leaves}
    way = [min(below)] if below else []
    while way and way.count(way[-1]) == 1:
        way.append(min(below[way[-1]] & below.keys()))
    return way[way.index(way[-1]) :] if way else []


def imports(folder: Path) -> list[tuple[Path, str]]:
    imported = []
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported += [(path, alias.name.split(".")[0]) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.append((path, node.module.split(".")[0]))
    return imported
