"""Extras through the ./tactful script, in a small checkout whose packages are wheels made here."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
OF_A_SET_UP = ("ROS_DISTRO", "LD_LIBRARY_PATH", "AMENT_PREFIX_PATH", "TACTFUL_PYTHON", "TACTFUL_HOME", "TACTFUL_STATE")
PYPROJECT = """
[project]
name = "tactful"
[project.optional-dependencies]
sheets = ["tone-sheets>=1,<2"]
greedy = ["tone-greedy>=1,<2"]
mcp = ["tone-mcp>=1,<2"]
gpu = ["onnxruntime-gpu>=1.24,<1.32"]
[project.scripts]
[tool.tactful.extras]
sheets = "spreadsheets"
greedy = "a package that needs another version of a locked one"
mcp = "a package with a lock of its own"
gpu = "a package that takes the place of a locked one"
"""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


class Checkout:
    """A copy of the script and the command line; colcon, whose work is not looked at here, is a stand-in."""

    def __init__(self, root: Path) -> None:
        self.root, self.wheels = root, root / "wheels"
        self.wheels.mkdir(parents=True)
        shutil.copy(ROOT / "tactful", root)
        for package in ("tactful_cli", "norm_core"):
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
        for package in ("norm_monitor", "action_selector", "study_desk", "sim_replays"):
            (root / package).symlink_to(ROOT / package)
        for package in ("norm_interfaces", "norm_nodes", "norm_bringup", "norm_bench_interfaces", "norm_bench"):
            (root / "ros2_ws/src" / package).mkdir(parents=True)
        (root / "ros2_ws/relocate_wheels.py").touch()
        (root / "pyproject.toml").write_text(PYPROJECT)
        self.wheel("tone-sheets", "1.5", "Requires-Dist: tone-locked>=1")
        self.wheel("tone-greedy", "1.0", "Requires-Dist: tone-locked>=1.1")
        self.wheel("tone-mcp", "1.1")
        self.wheel("tone-locked", "1.1")
        colcon, runtime = self.wheel("colcon", "1.0", script="#!/bin/sh\n"), self.wheel("onnxruntime", "1.30.9")
        self.lock("wheels", self.wheel("tone-locked", "1.0"), colcon, runtime)
        self.lock("gpu-cuda13", self.wheel("onnxruntime-gpu", "1.31.1"))
        self.lock("gpu-cuda12", self.wheel("onnxruntime-gpu", "1.26.0"))
        self.lock("mcp", self.wheel("tone-mcp", "1.0"))

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

    def run(self, *arguments: str, cwd: Path | None = None, driver: str = "") -> subprocess.CompletedProcess[str]:
        """The script, which finds what the command line imports in the environment of the tests."""
        environment = {k: v for k, v in os.environ.items() if k not in OF_A_SET_UP} | {
            "TACTFUL_PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "COLUMNS": "150",
        }
        if driver:
            program = self.root.parent / f"driver-{driver}/nvidia-smi"
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\necho {driver}\n")
            program.chmod(0o755)
            environment["PATH"] = f"{program.parent}:{environment['PATH']}"
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
    first = made.run("setup")
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
    unknown = checkout.run("setup", "sheetz")
    assert unknown.returncode == 2
    assert "there is no extra sheetz; name some of: sheets greedy mcp gpu" in unknown.stderr
    assert checkout.installed() == {"tone_locked-1.0"}


def test_an_extra_brings_its_packages_alone_and_outlives_the_environment(checkout: Checkout) -> None:
    """Version 1.1 of the locked package lies beside 1.0 and is not taken."""
    assert rows(checkout.run("setup", "sheets", "--json")) == {"sheets": []}
    assert checkout.installed() == {"tone_locked-1.0", "tone_sheets-1.5"}
    assert not list(checkout.site.glob("tactful-*"))
    assert "Installing" not in checkout.run("setup").stderr
    shutil.rmtree(checkout.root / ".venv")
    (checkout.root / ".tactful/done.wheels.venv").unlink()
    assert "Installing the extra sheets: done" in checkout.run("setup").stderr
    assert checkout.installed() == {"tone_locked-1.0", "tone_sheets-1.5"}


def test_an_extra_with_a_lock_is_installed_by_its_hashes(checkout: Checkout) -> None:
    """Without the lock the bounds would give 1.1."""
    assert rows(checkout.run("setup", "mcp", "--json")) == {"mcp": []}
    assert "tone_mcp-1.0" in checkout.installed()
    right = (checkout.root / "requirements/mcp.lock").read_text()
    (checkout.root / "requirements/mcp.lock").write_text(right[:-65] + "0" * 64 + "\n")
    shutil.rmtree(checkout.site / "tone_mcp-1.0.dist-info")
    changed = checkout.run("setup")
    assert changed.returncode == 0
    assert "DO NOT MATCH THE HASHES" in (checkout.root / ".tactful/setup.log").read_text()
    assert "then run: ./tactful setup mcp" in changed.stderr
    (checkout.root / "requirements/mcp.lock").write_text(right)


@pytest.mark.parametrize(
    ("driver", "complaint"),
    [
        ("", "there is no NVIDIA driver (nvidia-smi): install one first"),
        ("470.1", "CUDA 12 needs 525, CUDA 13 needs 580"),
    ],
)
def test_the_gpu_extra_is_refused_where_it_cannot_work(checkout: Checkout, driver: str, complaint: str) -> None:
    refused = checkout.run("setup", "gpu", driver=driver)
    assert refused.returncode == 3
    assert complaint in refused.stderr
    assert runtimes(checkout) == {"onnxruntime-1.30.9"}


@pytest.mark.parametrize(("driver", "version"), [("535.274.02", "1.26.0"), ("580.95.05", "1.31.1")])
def test_the_gpu_extra_takes_the_place_of_onnxruntime(checkout: Checkout, driver: str, version: str) -> None:
    done = checkout.run("setup", "gpu", driver=driver)
    assert done.returncode == 0, done.stderr
    assert runtimes(checkout) == {f"onnxruntime_gpu-{version}"}


def runtimes(checkout: Checkout) -> set[str]:
    return {each.name.removesuffix(".dist-info") for each in checkout.site.glob("onnxruntime*.dist-info")}


def test_an_extra_that_changes_a_locked_package_fails_once(checkout: Checkout) -> None:
    failed = checkout.run("setup", "greedy")
    assert failed.returncode == 3
    assert "tone-locked==1.0" in failed.stderr
    assert "then run: ./tactful setup greedy" in failed.stderr
    assert "tone_locked-1.0" in checkout.installed()
    again = checkout.run("setup", "--json")
    assert "Installing the extra greedy" not in again.stderr
    assert rows(again)["greedy"] == ["tone-greedy"]


def test_an_installed_copy_is_named_and_not_run(checkout: Checkout, tmp_path: Path) -> None:
    info, package = checkout.site / "tactful-0.1.0.dist-info", checkout.site / "tactful_cli"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tactful\nVersion: 0.1.0\n")
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("print('the copy')\n")
    try:
        shown = checkout.run("setup", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert "the copy" not in shown.stdout
        assert f"Remove it: {checkout.root}/.venv/bin/python -m pip uninstall tactful" in shown.stderr
        diagnosis = checkout.run("doctor", "--json")
        assert diagnosis.stdout, diagnosis.stderr
        rows_shown = json.loads(diagnosis.stdout)["checks"]
        diagnosed = next(row for row in rows_shown if row["check"] == "checkout")
        assert (diagnosed["verdict"], diagnosed["found"].split()[-1]) == ("broken", str(checkout.site))
        assert "pip uninstall tactful" in diagnosed["fix"]
    finally:
        shutil.rmtree(info)
        shutil.rmtree(package)
    assert checkout.run("setup").stderr == ""
