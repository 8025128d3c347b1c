"""A workspace as the page on deploying makes it, away from the checkout: its nodes and its command run from there."""

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from norm_core.bags.reader import BagReader
from tests.acceptance.playback import play
from tests.acceptance.test_wheel import OF_A_CHECKOUT, ROOT, SHIPPED, lend
from tests.docker_file import copied
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.ros,
    pytest.mark.thorough,
    pytest.mark.skipif(importlib.util.find_spec("colcon_ros") is None, reason="colcon is not installed here"),
]

BUILD = f"{sys.executable} -m colcon build --executor sequential"
OPTIONS = "--cmake-args -DBUILD_TESTING=OFF -DPython3_EXECUTABLE=$PWD/venv/bin/python --no-warn-unused-cli"
INSTALL = f"{sys.executable} -m pip --python venv/bin/python install -q --no-deps --no-build-isolation src/tactful"

# A network of its own, with nothing in it.
NO_NETWORK = "unshare --map-root-user --net"


def can_go_without_network() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NO_NETWORK.split(), "true"], capture_output=True, check=False).returncode == 0


def start(command: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a line of shell with ROS and what our packages need, and with no path of the checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_CHECKOUT}
    kept |= {"AMENT_PREFIX_PATH": sys.prefix, "CMAKE_PREFIX_PATH": sys.prefix, "PIP_NO_INDEX": "1", **environment}
    return subprocess.Popen(
        ["sh", "-ec", command], cwd=folder, env=kept, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(command: str, folder: Path, **environment: str) -> str:
    process = start(command, folder, **environment)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return said


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build what an image copies, so that what it copies suffices."""
    folder = tmp_path_factory.mktemp("workspace")
    for source, target in copied():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, folder / target)
    # Messages of this environment serve, as compiling them takes minutes; no wheel has the rclcpp of norm_behaviors.
    for package in ("norm_interfaces", "norm_bench_interfaces", "norm_behaviors"):
        (folder / f"src/tactful/ros2_ws/src/{package}/COLCON_IGNORE").touch()
    venv.create(folder / "venv", symlinks=True)
    lend(folder / "venv")
    (folder / "venv/COLCON_IGNORE").touch()
    said = run(f"{INSTALL}; {BUILD} {OPTIONS}", folder)
    assert "Summary: 4 packages finished" in said
    assert "ERROR" not in said
    return folder


@contextmanager
def hosted(workspace: Path, *nodes: str, inside: str = "") -> Iterator[None]:
    """Nodes of the workspace with its own parameter file, once they are active; they must end clean on SIGINT."""
    host = f"{inside} install/norm_nodes/lib/norm_nodes/host"
    parameters = "install/norm_bringup/share/norm_bringup/config/tactful.yaml"
    command = f". install/setup.sh; exec {host} {' '.join(nodes)} --autostart --ros-args --params-file {parameters}"
    process = start(command, workspace)
    said: list[str] = []
    try:
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            if line.startswith("running "):
                break
        assert said[-1:][0].startswith("running "), "".join(said)
        yield
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, "".join(said) + rest
    finally:
        process.kill()
        process.communicate()


def test_its_nodes_flag_what_is_published(workspace: Path, domain_id: int, observer: Observer, tmp_path: Path) -> None:
    from std_msgs.msg import String

    said = observer.collect(String, "/tactful/flags_json", 1000)
    with BagReader(SHIPPED / "zh_teahouse") as reader:
        topics = [one.topic for one in reader.topics]
    with hosted(workspace, "camera", "monitor"):
        observer.meet("monitor")
        play(SHIPPED / "zh_teahouse", topics, tmp_path)
        observer.until(lambda: said, "a flag")
    assert json.loads(said[0].data)["polarity"] in {"error", "competence"}


@pytest.mark.skipif(not can_go_without_network(), reason="unshare is not allowed here")
def test_its_nodes_start_with_no_network(workspace: Path, domain_id: int) -> None:
    with hosted(workspace, "camera", "ears", "monitor", inside=NO_NETWORK):
        pass


def test_its_command_and_nodes_are_those_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    setup = shlex.quote(str(workspace / "install/setup.sh"))
    program = "import norm_core, norm_nodes; print(norm_core.__file__, norm_nodes.__file__)"
    said = run(f". {setup}; cd {workspace}/venv/bin; ./tactful --version; ./python -Pc '{program}'", tmp_path)
    assert said.split()[-2].startswith(f"{workspace}/venv/")
    assert said.split()[-1].startswith(f"{workspace}/install/norm_nodes/")


def test_its_nodes_name_what_pip_did_not_install(workspace: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    setup = shlex.quote(str(workspace / "install/setup.sh"))
    process = start(f". {setup}; bare/bin/python -m norm_nodes.node_host", tmp_path)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert "has no Python package tactful; install it there with pip" in said.splitlines()[-1]
