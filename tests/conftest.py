"""What tests share: a ROS domain of one's own, and the reasons to skip."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sim_replays.drivers.ros_domain import claimed_domain
from tests.observer import Observer

ROOT = Path(__file__).resolve().parents[1]

# How long an example takes is the machine's affair; what hangs, the time limit of each test ends.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


ACCEPTANCE = (ROOT / "tests/acceptance", ROOT / "tests/goldens")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by these markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its stage, and skip what needs something that is not here, saying what."""
    for item in items:
        item.add_marker(_stage(item))
        if item.get_closest_marker("ros") and not _importable("rclpy", "norm_interfaces"):
            item.add_marker(
                pytest.mark.skip(reason="rclpy or the built norm_interfaces is missing: run ./tactful test")
            )
        if item.get_closest_marker("torch") and not _importable("torch", "transformers"):
            item.add_marker(
                pytest.mark.skip(reason="torch is not in this environment: ./tactful test runs it in one that has it")
            )
        if item.get_closest_marker("launch") and not _importable("launch_testing", "launch_ros"):
            item.add_marker(pytest.mark.skip(reason="launch_testing is not among the wheels: needs a ROS installation"))


def _stage(item: pytest.Item) -> str:
    if any(folder in item.path.parents for folder in ACCEPTANCE):
        return "acceptance"
    return "graph" if item.get_closest_marker("ros") else "unit"


@pytest.fixture
def domain_id(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain that no other test on this machine uses meanwhile, also set for subprocesses."""
    with claimed_domain() as domain:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        yield domain


@pytest.fixture
def observer(domain_id: int) -> Iterator[Observer]:
    observer = Observer(domain_id)
    yield observer
    observer.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark items and speech beside the project, where it is there."""
    folder = Path(os.environ.get("TACTFUL_SHARED", ROOT.parent / "shared"), "data")
    if not folder.is_dir():
        pytest.skip("../shared/data is not here")
    return folder


def _importable(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)
