import numpy as np
import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.sentences.encoder_engine import EncoderBackend
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract


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
    scores = engine.score(prompt, ("The weather is fine.", "I am sorry for your loss.", "Two tickets, please."))
    assert scores.best == 1


def test_neighbours_do_not_change_a_vector(sentences: SentenceEncoder) -> None:
    alone = SentenceEncoder().encode(["Where is the lift?"])
    among = sentences.encode(["Hello.", "Where is the lift?", "An entirely different and much longer sentence."])
    assert np.array_equal(alone[0], among[1])


def test_vectors_have_length_one_whatever_the_text(sentences: SentenceEncoder) -> None:
    vectors = sentences.encode(["", " ", "你好", "x" * 20_000, "\x00\ud83d\ude00"])
    assert vectors.shape == (5, sentences.dimensions)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-3)


def test_no_sentences_give_no_rows(sentences: SentenceEncoder) -> None:
    assert sentences.encode([]).shape == (0, sentences.dimensions)


def test_a_forgotten_sentence_gets_the_same_vector(sentences: SentenceEncoder) -> None:
    vectors = [sentences.encode([f"Sentence number {number}"])[0] for number in range(40)]
    again = sentences.encode(["Sentence number 0"])[0]
    assert np.array_equal(again, vectors[0])
