"""Extras through the ./tactful script, in a small checkout whose packages are wheels made here."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.tactful_cli.test_verbs import tactful

ROOT = Path(__file__).resolve().parents[2]
OF_A_SET_UP = ("ROS_DISTRO", "LD_LIBRARY_PATH", "AMENT_PREFIX_PATH", "TACTFUL_PYTHON", "TACTFUL_HOME", "TACTFUL_STATE")
PYPROJECT = """
[project]
name = "tactful"
[project.optional-dependencies]
study = ["tone-sheets>=1,<2"]
ray = ["tone-greedy>=1,<2"]
llama = ["tone-llama>=1,<2"]
[project.scripts]
[tool.tactful.extras]
study = "spreadsheets"
ray = "a package that needs another version of a locked one"
llama = "a package with a lock of its own"
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Checkout:
    """A copy of the script and the command line; colcon, whose work is not looked at here, is a stand-in."""

    def __init__(self, root: Path) -> None:
        self.root, self.wheels = root, root / "wheels"
        self.wheels.mkdir(parents=True)
        shutil.copy(ROOT / "tactful", root)
        for package in ("tactful_cli", "norm_core"):
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
        (root / "norm_monitor").symlink_to(ROOT / "norm_monitor")
        for package in ("norm_interfaces", "norm_nodes", "norm_bringup"):
            (root / "ros2_ws/src" / package).mkdir(parents=True)
        (root / "ros2_ws/relocate_wheels.py").touch()
        (root / "pyproject.toml").write_text(PYPROJECT)
        self.wheel("tone-sheets", "1.5", "Requires-Dist: tone-locked>=1")
        self.wheel("tone-greedy", "1.0", "Requires-Dist: tone-locked>=1.1")
        self.wheel("tone-llama", "1.1")
        self.wheel("tone-locked", "1.1")
        self.lock("wheels", self.wheel("tone-locked", "1.0"), self.wheel("colcon", "1.0", script="#!/bin/sh\n"))
        self.lock("llama", self.wheel("tone-llama", "1.0"))

    def wheel(self, name: str, version: str, metadata: str = "", script: str = "") -> Path:
        """A wheel without modules, for pip to install."""
        stem = f"{name.replace('-', '_')}-{version}"
        info = f"{stem}.dist-info"
        files = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        } | ({f"{stem}.data/scripts/{name}": script} if script else {})
        files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{info}/RECORD"])
        path = self.wheels / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for each, text in files.items():
                item = zipfile.ZipInfo(each)
                item.external_attr = 0o100755 << 16  # or pip installs no program
                archive.writestr(item, text)
        return path

    def lock(self, name: str, *wheels: Path) -> None:
        entries = []
        for wheel in wheels:
            distribution, version, *_ = wheel.name.split("-")
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            entries.append(f"{distribution.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n")
        (self.root / "requirements").mkdir(exist_ok=True)
        (self.root / f"requirements/{name}.lock").write_text("".join(entries))

    @property
    def site(self) -> Path:
        return next((self.root / ".venv/lib").glob("python3*")) / "site-packages"

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The script, which finds what the command line imports in the environment of the tests."""
        environment = {k: v for k, v in os.environ.items() if k not in OF_A_SET_UP} | {
            "TACTFUL_PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "COLUMNS": "150",
        }
        command = ["bash", str(self.root / "tactful"), *arguments]
        return subprocess.run(
            command,
            env=environment,
            cwd=cwd or self.root,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def installed(self) -> set[str]:
        return {each.name.removesuffix(".dist-info") for each in self.site.glob("tone*.dist-info")}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("checkout") / "tactful")
    first = made.run("version")
    assert first.returncode == 0, first.stderr
    return made


def rows(shown: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    """What each listed extra lacks."""
    assert shown.returncode == 0, shown.stderr
    return {row["extra"]: row["missing"] for row in json.loads(shown.stdout)["extras"]}


def test_the_extras_are_listed_and_an_unknown_one_is_refused(checkout: Checkout) -> None:
    listed = checkout.run("setup")
    assert listed.returncode == 0, listed.stderr
    assert "lacks tone-sheets" in listed.stdout
    assert "spreadsheets" in listed.stdout
    unknown = checkout.run("setup", "studdy")
    assert unknown.returncode == 2
    assert "there is no extra studdy; name some of: study ray llama" in unknown.stderr
    assert checkout.installed() == {"tone_locked-1.0"}


def test_an_extra_brings_its_packages_alone_and_outlives_the_environment(checkout: Checkout) -> None:
    """Version 1.1 of the locked package lies beside 1.0 and is not taken."""
    assert rows(checkout.run("setup", "study", "--json")) == {"study": []}
    assert checkout.installed() == {"tone_locked-1.0", "tone_sheets-1.5"}
    assert not list(checkout.site.glob("tactful-*"))
    assert "Installing" not in checkout.run("version").stderr
    shutil.rmtree(checkout.root / ".venv")
    (checkout.root / ".tactful/done.wheels.venv").unlink()
    assert "Installing the extra study: done" in checkout.run("version").stderr
    assert checkout.installed() == {"tone_locked-1.0", "tone_sheets-1.5"}


def test_an_extra_with_a_lock_is_installed_by_its_hashes(checkout: Checkout) -> None:
    """Without the lock the bounds would give 1.1."""
    assert rows(checkout.run("setup", "llama", "--json")) == {"llama": []}
    assert "tone_llama-1.0" in checkout.installed()
    right = (checkout.root / "requirements/llama.lock").read_text()
    (checkout.root / "requirements/llama.lock").write_text(right[:-65] + "0" * 64 + "\n")
    shutil.rmtree(checkout.site / "tone_llama-1.0.dist-info")
    changed = checkout.run("version")
    assert changed.returncode == 0
    assert "DO NOT MATCH THE HASHES" in (checkout.root / ".tactful/setup.log").read_text()
    assert "then run: ./tactful setup llama" in changed.stderr
    (checkout.root / "requirements/llama.lock").write_text(right)


def test_an_extra_that_changes_a_locked_package_fails_once(checkout: Checkout) -> None:
    failed = checkout.run("setup", "ray")
    assert failed.returncode == 3
    assert "tone-locked==1.0" in failed.stderr
    assert "then run: ./tactful setup ray" in failed.stderr
    assert "tone_locked-1.0" in checkout.installed()
    again = checkout.run("setup", "--json")
    assert "Installing the extra ray" not in again.stderr
    assert rows(again)["ray"] == ["tone-greedy"]


def test_an_installed_copy_is_named_and_not_run(checkout: Checkout, tmp_path: Path) -> None:
    info, package = checkout.site / "tactful-0.1.0.dist-info", checkout.site / "tactful_cli"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tactful\nVersion: 0.1.0\n")
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("print('the copy')\n")
    try:
        shown = checkout.run("version", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert "the copy" not in shown.stdout
        assert f"Remove it: {checkout.root}/.venv/bin/python -m pip uninstall tactful" in shown.stderr
        diagnosed = checkout_row(checkout.run("doctor", "--json"))
        assert (diagnosed["verdict"], diagnosed["found"].split()[-1]) == ("broken", str(checkout.site))
        assert "pip uninstall tactful" in diagnosed["mend"]
    finally:
        shutil.rmtree(info)
        shutil.rmtree(package)
    assert checkout.run("version").stderr == ""


def checkout_row(doctor: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return next(row for row in json.loads(doctor.stdout)["checks"] if row["check"] == "checkout")


def test_every_extra_of_the_project_says_what_it_is_for_and_is_completed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = json.loads(tactful("setup", "--json").stdout)["extras"]
    assert {row["extra"]: row["for"] for row in listed} == project["tool"]["tactful"]["extras"]
    assert [row["extra"] for row in listed] == list(project["project"]["optional-dependencies"])
    assert "setup" in tactful("--help").stdout
    completed = tactful(_TACTFUL_COMPLETE="complete_bash", COMP_WORDS="tactful setup st", COMP_CWORD="2")
    assert completed.stdout.split() == ["study"]
