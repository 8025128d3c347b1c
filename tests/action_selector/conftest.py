from collections.abc import Iterator

import pytest

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder


@pytest.fixture(scope="session")
def sentences() -> Iterator[SentenceEncoder]:
    yield SentenceEncoder()
