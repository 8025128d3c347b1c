"""Foreign message packages, each built once."""

from pathlib import Path

import pytest

from tests.foreign_interfaces import ROS_DRIVERS, build_once, environment


@pytest.fixture(scope="session")
def ros_prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, ROS_DRIVERS)


@pytest.fixture
def ros_drivers(ros_prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of the test see the packages of drivers."""
    for name, value in environment(ros_prefix).items():
        monkeypatch.setenv(name, value)
