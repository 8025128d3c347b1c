import pytest

from norm_monitor.meaning import Meanings


@pytest.fixture(scope="session")
def meaning() -> Meanings:
    return Meanings.shipped()
