from pathlib import Path

import numpy as np
import pytest

from action_selector.retrieval import Precedent, PrecedentError, PrecedentIndex, nearest
from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS, SentenceEncoder

SCENES = [
    Precedent(source="a", scene="People queue at the till of a shop.", action="Stand at the end of the queue."),
    Precedent(source="a", scene="Shoppers wait in line to pay.", action="Wait.", justification="Others were first."),
    Precedent(source="b", scene="A child cries in the park.", action="Fetch the parents."),
]


def test_the_nearest_come_first_and_never_from_the_same_source(sentences: SentenceEncoder) -> None:
    index = PrecedentIndex.of(SCENES, sentences)
    found = index.query("Customers stand in line at the cash desk.", sentences)
    assert {precedent.source for precedent, _ in found[:2]} == {"a"}
    assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)
    others = index.query("Customers stand in line at the cash desk.", sentences, not_of="a")
    assert [precedent.action for precedent, _ in others] == ["Fetch the parents."]
    assert index.query("", sentences) == []


def test_an_index_comes_back_as_it_was_saved(sentences: SentenceEncoder, tmp_path: Path) -> None:
    made = PrecedentIndex.of(SCENES, sentences, "abc")
    made.save(tmp_path / "index")
    loaded = PrecedentIndex.load(tmp_path / "index")
    assert (loaded.precedents, loaded.weights_sha256) == (made.precedents, "abc")
    scene = "A boy weeps on a bench."
    assert loaded.query(scene, sentences) == made.query(scene, sentences)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("precedents.jsonl", r"precedents\.jsonl, line 1"),
        ("vectors.npy", "is no readable index .*make it again with"),
        ("index.json", "is no readable index .*make it again with"),
    ],
)
def test_a_damaged_index_says_so(sentences: SentenceEncoder, tmp_path: Path, damage: str, why: str) -> None:
    PrecedentIndex.of(SCENES, sentences).save(tmp_path)
    (tmp_path / damage).write_bytes(b"{")
    with pytest.raises(PrecedentError, match=why):
        PrecedentIndex.load(tmp_path)


def test_a_missing_index_is_refused_with_the_verb_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(PrecedentError, match=r"none: there is no such index; make it with \./tactful norms index"):
        PrecedentIndex.load(tmp_path / "none")


@pytest.mark.parametrize("count", [0, 7, 300])
@pytest.mark.parametrize("every", [1, 3])
def test_the_nearest_are_those_of_a_full_sort(count: int, every: int) -> None:
    """Among rows that occur twice, so that equals come in the order of rows; what is not allowed is not found."""
    once = np.random.default_rng(0).normal(size=(100, 24)).astype(np.float32)
    rows = np.concatenate([once, once])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    allowed = np.arange(200) % every == 0
    cosines = (rows @ rows[3]).astype(float).round(COSINE_DIGITS)
    expected = sorted(np.flatnonzero(allowed), key=lambda place: (-cosines[place], place))[:count]
    found = nearest(rows, rows[3], count, allowed if every > 1 else None)
    assert found == [(int(place), float(cosines[place])) for place in expected]


def test_more_than_an_index_holds_are_refused(sentences: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("action_selector.retrieval.MOST_ENTRIES", 2)
    with pytest.raises(PrecedentError, match="an index holds 2"):
        PrecedentIndex.of(SCENES, sentences)
