"""What sentences mean, by the shipped concepts: sentences that no example has, and their nearest opposites."""

import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_monitor.context.meaning import Concepts, EncoderMatcher, Match, cached_vectors
from norm_monitor.context.wording import sentences


@pytest.mark.parametrize(
    ("concept", "sentence", "is_meant"),
    [
        ("amends", "I should have let you speak first.", True),
        ("amends", "That was thoughtless of me, and I take it back.", True),
        ("amends", "我刚才说错了，对不起。", True),
        ("greeting", "Good morning, madam.", True),
        ("farewell", "Goodbye, and see you on Monday.", True),
        ("amends", "The kitchen is on the second floor.", False),
        ("amends", "Sorry, the cafe is closed.", False),
        ("protest", "That one is fine.", False),
        ("stop", "Where is the bus stop?", False),
    ],
)
def test_a_sentence_that_no_example_has_is_understood(
    meaning: EncoderMatcher, concept: str, sentence: str, is_meant: bool
) -> None:
    assert bool(meaning.match(sentence, concept)) is is_meant


def test_an_example_is_known_by_heart(meaning: EncoderMatcher) -> None:
    concepts = Concepts.shipped().concepts
    told = Counter(example for concept in concepts.values() for example in concept.like)
    for name in concepts.keys() - {"ordinary"}:
        single = [e for e in concepts[name].like if told[e] == 1 and len(sentences(e)) == 1]
        missed = [example for example in single if not meaning.match(example, name)]
        assert not missed, (name, missed)


@pytest.mark.parametrize(
    "concepts", [{"a": {"like": ["Hello"], "kin": ["b"]}}, {"a": {"of": ["b"]}}, {"a": {"unlike": ["Hello"]}}]
)
def test_concepts_that_name_what_is_not_there_are_refused(concepts: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Concepts.model_validate({"version": "1", "concepts": concepts})


TEXTS = ["Good morning.", "早上好。", "Good morning."]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))
    return tmp_path / "sentences"


def files(folder: Path) -> list[Path]:
    """Return the files of vectors, without the tokens and the tokenizer that all encoders share."""
    shared = (".encoder.npy", ".pieces.npy")
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(shared))


def test_vectors_are_kept_by_what_they_are_made_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder()
    first = cached_vectors(encoder, TEXTS)
    assert np.array_equal(first, encoder.encode(TEXTS))
    assert len(files(folder)) == 1
    monkeypatch.setattr(encoder, "encode", lambda texts: pytest.fail("they are kept"))
    assert np.array_equal(cached_vectors(encoder, TEXTS), first)
    with pytest.raises(pytest.fail.Exception):
        cached_vectors(encoder, ["Good evening."])


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00", b"no array"])
def test_a_damaged_file_is_made_anew(folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    encoder = SentenceEncoder()
    first = cached_vectors(encoder, TEXTS)
    kept = files(folder)[0]
    kept.unlink()  # as it is mapped
    kept.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(cached_vectors(encoder, TEXTS), first)
    assert "is damaged" in caplog.text
    assert np.array_equal(np.load(kept)["array"][0], first)


def test_a_second_start_fits_no_probe_and_matches_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def matches() -> list[Match]:
        meanings = EncoderMatcher.shipped()
        return [meanings.match(text, concept) for text in TEXTS for concept in Concepts.shipped().concepts]

    first = matches()
    monkeypatch.setattr(np.linalg, "solve", lambda *_: pytest.fail("the probes are kept"))
    assert matches() == first
