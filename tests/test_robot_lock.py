"""The lock of a colcon workspace: all that the nodes need but numpy, in the versions that are tested."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def locked(name: str) -> set[str]:
    """Each package of a lock with its version."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return set(re.findall(r"^[a-z0-9-]+==[^ ]+", text, flags=re.MULTILINE))


def test_it_holds_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["weights"],
    ]
    names = {re.split(r"[^\w-]", each)[0].lower() for each in needed}
    assert names - {each.split("==")[0] for each in locked("robot.lock")} == {"numpy"}


def test_its_versions_are_those_of_the_tested_environment() -> None:
    assert locked("robot.lock") - locked("installed-ros.lock") == set()
