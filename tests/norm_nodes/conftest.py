"""Foreign message packages, each built once."""

from pathlib import Path

import pytest

from tests.foreign_interfaces import ROS_DRIVERS, build_once


@pytest.fixture(scope="session")
def ros_drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_once(tmp_path_factory, ROS_DRIVERS)
