"""A bag played by `ros2 bag play --clock` where it is installed, else by our own player."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.patience import PATIENCE_S

RATE, CLOCK_HZ, DISCOVERY_S = 5, 40, 10
LOSSLESS = {"reliability": "reliable", "history": "keep_all"}


def player(bag: Path, topics: Sequence[str], folder: Path) -> list[str]:
    """The command that plays a bag."""
    if ros2 := shutil.which("ros2"):
        stock = [ros2, "bag", "play", "--delay", str(DISCOVERY_S), "--disable-keyboard-controls"]
        stock += ["--wait-for-all-acked", "0"]
        if subprocess.run([*stock, "--help"], capture_output=True, check=False).returncode == 0:
            overrides = folder / "qos.yaml"
            overrides.write_text(yaml.safe_dump({topic: dict(LOSSLESS) for topic in topics}), encoding="utf-8")
            return [*stock, str(bag), "--qos-profile-overrides-path", str(overrides), "--topics", *topics]
    return [sys.executable, "-m", "tactful_cli", "bag", "play", str(bag)]


def play(bag: Path, topics: Sequence[str], folder: Path) -> str:
    """Play topics of a bag once, and lose nothing on the way; the command that did it."""
    command = [*player(bag, topics, folder), "--clock", str(CLOCK_HZ), "--rate", str(RATE)]
    played = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert played.returncode == 0, f"{' '.join(command)}: {played.stderr}"
    return " ".join(command)
