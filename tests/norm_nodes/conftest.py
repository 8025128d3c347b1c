"""Message packages of other projects, each built once for all tests."""

from collections.abc import Callable

import pytest

from tests.foreign_interfaces import BOND, PEOPLE, ROS_DRIVERS, Definitions, build_once, environment


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[Definitions], None]:
    """Show packages to the processes of the test."""

    def install(definitions: Definitions) -> None:
        for name, value in environment(build_once(tmp_path_factory, definitions)).items():
            monkeypatch.setenv(name, value)

    return install


@pytest.fixture
def ros_drivers(install: Callable[[Definitions], None]) -> None:
    install(ROS_DRIVERS)


@pytest.fixture
def hri_msgs(install: Callable[[Definitions], None]) -> None:
    """The messages of REP-155, and those of tf."""
    install(PEOPLE)


@pytest.fixture
def bond_msgs(install: Callable[[Definitions], None]) -> None:
    install(BOND)
