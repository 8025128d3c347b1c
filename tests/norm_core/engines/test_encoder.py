import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.sentences.sentence_encoder import EncoderBackend, SentenceEncoder
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract, score


@pytest.fixture(scope="module")
def sentences() -> SentenceEncoder:
    return SentenceEncoder(remembered=16)


class TestEncoder(EngineContract):
    @pytest.fixture
    def engine(self, sentences: SentenceEncoder) -> Engine:
        return Engine(EncoderBackend(sentences), WallClock())


def test_the_nearest_meaning_wins(sentences: SentenceEncoder) -> None:
    engine = Engine(EncoderBackend(sentences), WallClock())
    prompt = Prompt(version="t", parts=(Text(text="My grandmother died yesterday."),))
    scores = score(engine, prompt, ("The weather is fine.", "I am sorry for your loss.", "Two tickets, please."))
    assert scores.best == 1
