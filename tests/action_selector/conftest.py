import pytest

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder


@pytest.fixture(scope="session")
def sentences() -> SentenceEncoder:
    return SentenceEncoder()
