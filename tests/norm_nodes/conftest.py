"""Foreign message packages, each built once."""

from pathlib import Path

import pytest

from tests.foreign_interfaces import MGONZS13, PEOPLE, ROS_DRIVERS, build


@pytest.fixture(scope="session")
def ros_drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("ros_drivers"), ROS_DRIVERS)


@pytest.fixture(scope="session")
def mgonzs13(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("mgonzs13"), MGONZS13)


@pytest.fixture(scope="session")
def rep155(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("rep155"), PEOPLE)
