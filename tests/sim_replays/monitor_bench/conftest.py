import pytest

from norm_monitor.context.meaning import EncoderMatcher


@pytest.fixture(scope="session")
def meaning() -> EncoderMatcher:
    return EncoderMatcher.shipped()
