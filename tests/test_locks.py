"""The locks: of each extra (for a GPU those for CUDA 12 and 13 apart) and of a robot, beside the tested environment."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
GPU_LOCKS = ("gpu-cuda12", "gpu-cuda13", "transformers-cuda12", "transformers-cuda13", "serve")
EXTRA_LOCKS = ("bench", "docs", "mcp", "ray", "study", "weights")
PARTS = {"bench": "sim_replays", "study": "study_desk"}


def locked(name: str) -> set[tuple[str, str]]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==([^ ]+)", text, flags=re.MULTILINE))


def test_every_extra_has_a_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {name.partition("-")[0] for name in (*GPU_LOCKS, *EXTRA_LOCKS)} == project["optional-dependencies"].keys()


@pytest.mark.parametrize("name", [*GPU_LOCKS, *EXTRA_LOCKS, "llama-server", "kilted"])
def test_every_package_of_it_has_a_hash(name: str) -> None:
    entries = re.split(r"^(?=\S)", (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8"), flags=re.M)
    assert [entry for entry in entries[1:] if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("name", [*GPU_LOCKS, *EXTRA_LOCKS])
def test_it_holds_its_extra_within_the_bounds(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = project["optional-dependencies"][name.partition("-")[0]]
    if name in PARTS:
        part = tomllib.loads((ROOT / PARTS[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert bounds == [f"{part['name']}=={project['version']}"]
        assert part["version"] == project["version"]
        assert part["dependencies"][-1] == f"tactful=={project['version']}"
        bounds = part["dependencies"][:-1]
    for text in bounds:
        bound = Requirement(text)
        versions = [version for package, version in locked(name) if package == bound.name.lower()]
        assert versions, bound
        assert all(bound.specifier.contains(version) for version in versions), bound


@pytest.mark.parametrize("name", GPU_LOCKS)
def test_it_holds_one_version_of_cuda(name: str) -> None:
    """But for cuBLAS: CTranslate2, which runs Whisper, loads that of CUDA 12 (libcublas.so.12)."""
    packages = {package for package, _ in locked(name)}
    cudnn = "nvidia-cudnn-cu12" if name.endswith("12") else "nvidia-cudnn-cu13"
    assert {"nvidia-cudnn-cu12", "nvidia-cudnn-cu13"} & packages == {cudnn}


@pytest.mark.parametrize("name", [*GPU_LOCKS[:-1], *EXTRA_LOCKS])
def test_it_changes_no_version_of_the_tested_environment(name: str) -> None:
    """The extra `serve` is not held to it: it has an environment of its own."""
    tested = locked("wheels")
    packages = {package for package, _ in tested}
    assert {pair for pair in locked(name) if pair[0] in packages} <= tested


def test_the_onnx_runtime_of_the_cpu_stands_in_no_lock_with_that_of_the_gpu() -> None:
    names = {name: {package for package, _ in locked(name)} for name in ("wheels", "gpu-cuda12", "gpu-cuda13")}
    assert {name for name, packages in names.items() if "onnxruntime" in packages} == {"wheels"}
    assert {name for name, packages in names.items() if "onnxruntime-gpu" in packages} == {"gpu-cuda12", "gpu-cuda13"}


def test_kilted_has_the_wheels_of_jazzy() -> None:
    """A release of Kilted brings no python-cmake-module."""
    jazzy, kilted = (
        {package for package, _ in locked(name) if package.startswith("ros-")} for name in ("wheels", "kilted")
    )
    wanted = {name.replace("-jazzy-", "-kilted-") for name in jazzy if "-jazzy-" in name and "python-cmake" not in name}
    assert wanted <= kilted
    assert not locked("kilted") - {pair for pair in locked("kilted") if pair[0].startswith("ros-")}


def test_the_lock_of_a_robot_holds_every_dependency_but_numpy_as_tested() -> None:
    """A robot has a colcon workspace, and numpy from the system."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    own = project["project"]
    needed = [*project["build-system"]["requires"], *own["dependencies"], *own["optional-dependencies"]["weights"]]
    names = {Requirement(text).name.lower() for text in needed}
    assert names - {package for package, _ in locked("robot")} == {"numpy"}
    assert locked("robot") - locked("installed-ros") == set()
