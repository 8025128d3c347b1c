import pytest

from norm_monitor.context.meaning import Meanings


@pytest.fixture(scope="session")
def meaning() -> Meanings:
    return Meanings.shipped()
