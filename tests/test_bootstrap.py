"""What ./tactful says where something is missing; each refusal comes before anything is installed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from norm_core import __version__
from tactful_cli.main import VERBS
from tests.command_line import IN_BACKGROUND
from tests.patience import PATIENCE_S, ends_in_time

ROOT = Path(__file__).resolve().parents[1]
TOOLS = """
    awk bash cat cut date df dirname env find flock g++ gcc grep head make mkdir mv printf readlink rm sed
    sha256sum sleep sort tail uname wc xargs
""".split()  # noqa: SIM905

OF_A_SET_UP = ("ROS_DISTRO", "LD_LIBRARY_PATH", "AMENT_PREFIX_PATH", "TACTFUL_PYTHON", "TACTFUL_HOME")


def tactful(home: Path, path: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A first call with a home of its own, and where path is given with no other program than those in it."""
    inherited = {k: v for k, v in os.environ.items() if k not in OF_A_SET_UP}
    environment = {**inherited, "TACTFUL_HOME": str(home), **environment}
    if path:
        environment["PATH"] = str(path)
    bash = shutil.which("bash")
    assert bash
    return subprocess.run(
        [bash, str(ROOT / "tactful"), "doctor"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder of links to just the programs that the script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (folder / tool).symlink_to(found)
    python = folder / "python3"  # no link: a version manager's python3 is a script that needs more than this folder
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


def test_help_and_version_need_no_set_up(tmp_path: Path, tools: Path) -> None:
    home = tmp_path / "home"
    bash = shutil.which("bash")
    assert bash
    command = [bash, str(ROOT / "tactful")]
    environment = {"PATH": str(tools), "TACTFUL_HOME": str(home)}
    asked, unasked, version = (
        subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=True)
        for arguments in (["--help"], [], ["--version"])
    )
    mistyped = subprocess.run([*command, "demoo"], env=environment, capture_output=True, text=True, check=False)
    assert (mistyped.returncode, mistyped.stderr.splitlines()[0]) == (2, "tactful: there is no verb demoo:")
    assert asked.stdout == unasked.stdout
    assert version.stdout == f"{__version__}\n"
    assert (asked.stderr, version.stderr, home.exists()) == ("", "", False)
    listed = dict(line.split(maxsplit=1) for line in asked.stdout.partition("Verbs:\n")[2].splitlines())
    assert list(listed) == [*VERBS, "env"]
    assert all(listed.values())


@pytest.mark.parametrize("program", ["g++", "python3"])
def test_a_missing_program_is_named(tmp_path: Path, tools: Path, program: str) -> None:
    (tools / program).unlink()
    refused = tactful(tmp_path / "home", tools)
    assert refused.returncode == 3
    named = {"g++": "g++ is missing", "python3": "no Python 3.11, 3.12 or 3.13 was found"}
    assert named[program] in refused.stderr


@pytest.mark.parametrize(
    ("home", "environment", "told"),
    [
        ("our robot", {}, "spaces or letters other than ASCII"),
        ("größer", {}, "TACTFUL_HOME"),
        ("home", {"TACTFUL_PYTHON": "/bin/false"}, "at TACTFUL_PYTHON=/bin/false"),
        ("home", {"ROS_DISTRO": "humble"}, "ROS 2 humble is not supported: Tactful needs Jazzy or Kilted"),
        ("home", {"TACTFUL_ROS": "rolling"}, "ROS 2 rolling is not supported: Tactful needs Jazzy or Kilted"),
        ("/proc/nowhere", {}, "/proc/nowhere cannot be written to"),
    ],
)
def test_what_cannot_be_set_up_is_refused(tmp_path: Path, home: str, environment: dict[str, str], told: str) -> None:
    refused = tactful(tmp_path / home, None, **environment)
    assert refused.returncode == 3
    assert told in refused.stderr


def test_a_sourced_ros_without_rclpy_is_named(tmp_path: Path, tools: Path) -> None:
    refused = tactful(tmp_path / "home", tools, ROS_DISTRO="jazzy")
    assert refused.returncode == 3
    assert "python3 cannot import rclpy" in refused.stderr


def test_too_little_room_is_named_before_it_is_used_up(tmp_path: Path, tools: Path) -> None:
    (tools / "df").unlink()
    (tools / "df").write_text("#!/bin/sh\nprintf 'head\\n/dev/x 1 1 102400 1%% /\\n'\n")
    (tools / "df").chmod(0o755)
    refused = tactful(tmp_path / "home", tools)
    assert refused.returncode == 3
    assert "100 MB free" in refused.stderr


@pytest.mark.parametrize(("start", "number"), [((), signal.SIGINT), (IN_BACKGROUND, signal.SIGTERM)])
def test_an_interrupted_stage_leaves_nothing_running(tmp_path: Path, start: Sequence[str], number: int) -> None:
    python, told = tmp_path / "python", tmp_path / "pid"
    python.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        f'"-m venv"*) sleep 3600 & echo $! >{told}; wait ;;\n'
        f'*) exec {sys.executable} "$@" ;;\nesac\n'
    )
    python.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if k not in OF_A_SET_UP}
    environment |= {"TACTFUL_HOME": str(tmp_path / "home"), "TACTFUL_PYTHON": str(python)}
    command = [*start, "bash", str(ROOT / "tactful"), "doctor"]
    script = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + PATIENCE_S
    while not (told.exists() and told.read_text().strip()):
        assert time.monotonic() < deadline_s, "the stage did not begin"
        time.sleep(0.02)
    script.send_signal(number)
    _, said = script.communicate(timeout=PATIENCE_S)
    assert script.returncode == 130
    assert "interrupted" in said
    assert ends_in_time(int(told.read_text()))


def test_a_failing_stage_shows_its_log_and_the_next_call_resumes(tmp_path: Path, tools: Path) -> None:
    """pip is made to fail by a lock of one package that no index has; the environment made before is kept."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "ros2_ws", checkout / "ros2_ws")
    shutil.copy(ROOT / "tactful", checkout / "tactful")
    (checkout / "requirements").mkdir()
    (checkout / "requirements/wheels.lock").write_text(f"tactful-none==1.0 --hash=sha256:{'0' * 64}\n")
    environment = {k: v for k, v in os.environ.items() if k not in OF_A_SET_UP} | {"PIP_NO_INDEX": "1"}
    for attempt in range(2):
        failed = subprocess.run(
            ["bash", str(checkout / "tactful"), "doctor"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert failed.returncode == 3
        assert "Installing the locked dependencies failed" in failed.stderr
        assert f"the whole log is {checkout}/.tactful/setup.log" in failed.stderr
        assert ("Making .venv" in failed.stderr) == (attempt == 0)
