"""The image and the compose file as far as they can be read here; no test builds them."""

import json
import re
import subprocess
import tomllib

import yaml

from tests.docker_file import FILE, copied, instructions

ROOT = FILE.parents[1]
COMPOSE = FILE.with_name("compose.yaml")


def test_every_copied_path_is_here() -> None:
    assert [source for source, _ in copied() if not (ROOT / source).exists()] == []


def test_all_packages_of_the_wheel_are_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= {source for source, _ in copied()}


def test_both_stages_stand_on_one_base_by_its_digest() -> None:
    base = next(rest for name, rest in instructions() if name == "ARG" and rest.startswith("BASE="))
    assert re.fullmatch(r"BASE=ros:jazzy-ros-base@sha256:[0-9a-f]{64}", base)
    assert [rest.split()[0] for name, rest in instructions() if name == "FROM"] == ["${BASE}"] * 2


def test_its_last_stage_takes_what_the_first_makes() -> None:
    """The environment's paths are fixed when it is made, so it must lie where it was built."""
    taken = [
        rest.split()[1:] for name, rest in instructions() if name == "COPY" and "--from=build /opt/tactful/" in rest
    ]
    assert [source for source, target in taken if source == target] == ["/opt/tactful/install", "/opt/tactful/venv"]
    assert ("WORKDIR", "/opt/tactful") in instructions()


def test_the_container_runs_its_command_in_the_workspace() -> None:
    entry = json.loads(next(rest for name, rest in instructions() if name == "ENTRYPOINT"))
    entry[2] = entry[2].replace("/opt/tactful/install/setup.bash", "/dev/null")
    said = subprocess.run([*entry, "echo", "a b", "c"], capture_output=True, text=True, check=True)
    assert said.stdout == "a b c\n"


def test_compose_starts_a_profile_where_it_meets_the_robot() -> None:
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    for service in services.values():
        assert (COMPOSE.parent / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == FILE
        assert service["command"][:2] == ["tactful", "up"]
        assert (service["network_mode"], service["ipc"]) == ("host", "host")
    assert services["jetson"]["runtime"] == "nvidia"
