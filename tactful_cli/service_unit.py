"""The systemd user unit that starts `tactful up` with the robot, with or without a network."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError
from tactful_cli.extras import ROOT

NAME = "tactful.service"
# What a user types once the unit is written, and before its file is removed.
ENABLE = (
    "systemctl --user daemon-reload",
    f"systemctl --user enable --now {NAME}",
    "sudo loginctl enable-linger $USER",
)
DISABLE = (f"systemctl --user disable --now {NAME}",)

# Settings of the shell that `up --install` runs in, without which the service would not meet the robot's topics.
_KEPT = (
    "CYCLONEDDS_URI",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "RMW_IMPLEMENTATION",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_DISCOVERY_SERVER",
    "ROS_DOMAIN_ID",
    "ROS_LOCALHOST_ONLY",
    "ROS_LOG_DIR",
    "ROS_STATIC_PEERS",
    "TACTFUL_HOME",
    "TACTFUL_MODELS",
    "TACTFUL_WEIGHTS",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
)


def unit_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the user's systemd finds the unit."""
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config", "systemd/user", NAME)


def unit_text(profile: str, environment: Mapping[str, str] = os.environ, options: Sequence[str] = ()) -> str:
    """Fill the unit for a profile from the shell's environment; raise TactfulError for what a unit cannot hold."""
    profile = str(Path(profile).absolute()) if Path(profile).is_file() else profile
    command = [*_program(), "up", profile, *options]
    if setup_file := _setup_file(environment):
        command = ["/bin/bash", "-c", '. "$0" && exec "$@"', str(setup_file), *command]
    kept = [f"{name}={environment[name]}" for name in _KEPT if environment.get(name)]
    return Template(shipped_file("tactful_cli", NAME).read_text(encoding="utf-8")).substitute(
        profile=_escaped(profile).replace("$$", "$"),
        command=" ".join(_quoted(word) for word in command),
        environment="\n".join(f"Environment={_quoted(each).replace('$$', '$')}" for each in kept),
    )


def _program() -> Sequence[str]:
    """Return the checkout's own script, or the command of the environment that this is installed in."""
    script = ROOT / "tactful"
    return [str(script if script.is_file() else Path(sys.prefix, "bin/tactful"))]


def _setup_file(environment: Mapping[str, str]) -> Path | None:
    """Return the setup file of the workspace or ROS that the shell has sourced; packaged ROS has none."""
    named = ":".join(environment.get(name, "") for name in ("COLCON_PREFIX_PATH", "AMENT_PREFIX_PATH"))
    prefixes = [Path(each) for each in named.split(":") if each and Path(each) != Path(sys.prefix)]
    files = (prefix / name for prefix in prefixes for name in ("setup.bash", "setup.sh"))
    return next((file for file in files if file.is_file()), None)


def _quoted(word: str) -> str:
    return f'"{_escaped(word)}"'


def _escaped(word: str) -> str:
    """Write a word as systemd reads it back in quotes; a dollar counts only in a command."""
    if not word.isprintable():
        raise TactfulError(f"up: {word!r} has a character that a systemd unit cannot hold; rename it")
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, escaped)
    return word
