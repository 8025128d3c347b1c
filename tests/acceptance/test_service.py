"""The service under a systemd of one's own, on a machine without a network; a script stands in for `tactful`."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tactful_cli.service_unit import DISABLE, ENABLE, unit_path, unit_text
from tests.patience import PATIENCE_S

# A systemd for a user starts only where it finds the mark of a machine that systemd has booted.
MANAGER = "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec /lib/systemd/systemd --user"
ALONE = ("unshare", "--mount", "--net", "sh", "-ec")
PROGRAM = """
trap 'echo interrupted >>"$HOME/said"; exit 0' INT
echo "$GREETING" "$@" >>"$HOME/said"
[ "$2" != broken ] || exit 2
while :; do read -r line <"$HOME/never" || :; done
"""


def can_start_a_manager() -> bool:
    if not (shutil.which("unshare") and Path("/lib/systemd/systemd").is_file()):
        return False
    tried = [*ALONE, "mount -t tmpfs tmpfs /run && test -w /sys/fs/cgroup/systemd"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_start_a_manager(), reason="no systemd can be started here")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's home with a workspace to source, whose systemd has started."""
    with TemporaryDirectory(prefix="sd-") as name, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        folder = Path(name)
        for variable, value in {"HOME": name, "XDG_RUNTIME_DIR": name, "XDG_CONFIG_HOME": f"{name}/config"}.items():
            monkeypatch.setenv(variable, value)
        (folder / "setup.bash").write_text("export GREETING=sourced\n")
        os.mkfifo(folder / "never")
        notified.bind(f"{name}/notify")
        notified.settimeout(PATIENCE_S)
        environment = {**os.environ, "NOTIFY_SOCKET": f"{name}/notify"}
        manager = subprocess.Popen(
            [*ALONE, MANAGER], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while b"READY=1" not in notified.recv(4096):
                pass
            yield folder
        finally:
            manager.terminate()
            manager.wait(PATIENCE_S)


def install(home: Path, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the unit as `up --install` does, with the stand-in for the command."""
    program = home / "tactful"
    program.write_text(f"#!/bin/bash\n{PROGRAM}")
    program.chmod(0o755)
    monkeypatch.setattr("tactful_cli.service_unit.ROOT", home)
    unit_path().parent.mkdir(parents=True)
    unit_path().write_text(unit_text(profile, {"COLCON_PREFIX_PATH": str(home)}))
    for command in ENABLE[:2]:
        subprocess.run(command.split(), check=False, capture_output=True, timeout=PATIENCE_S)


def state() -> str:
    shown = ["systemctl", "--user", "show", "tactful", "-p", "ActiveState", "--value"]
    return subprocess.run(shown, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip()


def test_it_starts_with_no_network_and_ends_on_an_interrupt(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home, "pepper", monkeypatch)
    assert state() == "active"
    (home / "never").write_text("")  # the program opens it once it is ready
    (command,) = DISABLE
    subprocess.run(command.split(), check=True, capture_output=True, timeout=PATIENCE_S)
    assert state() == "inactive"
    assert (home / "said").read_text() == "sourced up pepper\ninterrupted\n"


def test_a_bad_profile_is_not_started_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home, "broken", monkeypatch)
    waited = ["systemctl", "--user", "start", "--wait", "tactful"]
    subprocess.run(waited, check=False, capture_output=True, timeout=PATIENCE_S)
    assert state() == "failed"
    assert (home / "said").read_text().splitlines()[-1] == "sourced up broken"
