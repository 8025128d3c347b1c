import pytest

from norm_core.engines.sentences import SentenceEncoder
from norm_monitor.meaning import Concepts, Meanings


@pytest.fixture(scope="session")
def meaning() -> Meanings:
    return Meanings(SentenceEncoder(), Concepts.shipped())
