"""The systemd unit: what it runs, where it is valid, and that it starts without a network."""

import configparser
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from norm_core.runtime.errors import TactfulError
from tactful_cli.up.verb import unit_text


def read(text: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


def words(value: str) -> list[str]:
    """A command as systemd splits it."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(value)]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with awkward letters in its path, whose setup file sets a variable."""
    folder = tmp_path / 'robot "50%" $HOME'
    folder.mkdir()
    (folder / "setup.bash").write_text("export SOURCED=yes\n")
    return folder


def test_it_finds_a_profile_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service does not start in the folder where it was written."""
    monkeypatch.chdir(tmp_path)
    Path("my robot.yaml").touch()
    assert words(read(unit_text("my robot.yaml", {}))["Service"]["ExecStart"])[2:] == [str(tmp_path / "my robot.yaml")]


def test_it_sources_the_workspace_of_the_shell(workspace: Path) -> None:
    command = words(read(unit_text("pepper", {"COLCON_PREFIX_PATH": str(workspace)}))["Service"]["ExecStart"])
    program = command.index("up") - 1
    shown = subprocess.run(
        [*command[:program], "sh", "-c", 'echo "$SOURCED" "$@"', "sh", *command[program + 1 :]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "yes up pepper\n"


def test_it_keeps_what_finds_the_robots_topics() -> None:
    text = unit_text("pepper", {"ROS_DOMAIN_ID": "7", "HF_TOKEN": "secret", "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"})
    assert 'Environment="ROS_DOMAIN_ID=7"' in text
    assert 'Environment="RMW_IMPLEMENTATION=rmw_fastrtps_cpp"' in text
    assert "secret" not in text


def test_it_waits_for_no_network_and_ends_on_an_interrupt() -> None:
    unit = read(unit_text("pepper", {}))
    assert not {"After", "Requires", "Wants", "BindsTo"} & set(unit["Unit"])
    assert (unit["Service"]["KillSignal"], unit["Service"]["RestartPreventExitStatus"]) == ("SIGINT", "2 4")


def test_a_profile_that_a_unit_cannot_hold_is_refused() -> None:
    with pytest.raises(TactfulError, match="a systemd unit cannot hold"):
        unit_text("pepper\nExecStartPre=/bin/false", {})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_it(workspace: Path, tmp_path: Path) -> None:
    unit = tmp_path / "tactful.service"
    unit.write_text(unit_text("pepper", {"COLCON_PREFIX_PATH": str(workspace), "ROS_DOMAIN_ID": "7"}))
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
