from pathlib import Path

import numpy as np
import pytest

from action_selector.retrieve.nearest import Nearest
from action_selector.retrieve.precedents import Precedent, PrecedentError, PrecedentIndex
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder

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


@pytest.mark.parametrize("damage", ["precedents.jsonl", "vectors.npy", "index.json"])
def test_a_damaged_index_says_so(sentences: SentenceEncoder, tmp_path: Path, damage: str) -> None:
    PrecedentIndex.of(SCENES, sentences).save(tmp_path)
    (tmp_path / damage).write_bytes(b"{")
    with pytest.raises(PrecedentError, match=r"index|precedents\.jsonl"):
        PrecedentIndex.load(tmp_path)


def unit_rows(count: int, seed: int = 0) -> np.ndarray:
    """Rows around forty middles, as scenes of a few kinds are."""
    random = np.random.default_rng(seed)
    middles = random.normal(size=(40, 24))
    rows = middles[random.integers(0, 40, count)] + 0.5 * random.normal(size=(count, 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_the_approximate_index_finds_most_of_what_the_exact_one_does() -> None:
    rows = unit_rows(3000)
    exact, approximate = Nearest(rows), Nearest(rows, exact_up_to=100)
    hits = 0
    for vector in unit_rows(50, seed=1):
        right = {place for place, _ in exact.to(vector, 5)}
        found = approximate.to(vector, 5)
        hits += len(right & {place for place, _ in found})
        assert all(cosine == pytest.approx(float(rows[place] @ vector), abs=1e-5) for place, cosine in found)
    assert hits >= 0.8 * 5 * 50


def test_what_is_not_allowed_is_not_found() -> None:
    rows = unit_rows(200)
    allowed = np.arange(200) % 2 == 0
    for index in (Nearest(rows), Nearest(rows, exact_up_to=10)):
        assert all(place % 2 == 0 for place, _ in index.to(rows[1], 10, allowed))
        assert index.to(rows[2], 1, allowed)[0][0] == 2


def test_where_the_nearest_cells_are_all_forbidden_others_are_looked_into() -> None:
    """As where a robot asks about a long video of its own: all that is near is of that video."""
    near, far = unit_rows(300)[:1].repeat(300, axis=0), unit_rows(300, seed=2)
    index = Nearest(np.concatenate([near, far]), exact_up_to=10)
    allowed = np.arange(600) >= 300
    found = index.to(near[0], 5, allowed)
    assert len(found) == 5
    assert all(place >= 300 for place, _ in found)


@pytest.fixture
def many() -> list[Precedent]:
    """Scenes of three sources, more than are compared one by one below."""
    deeds = ("waves", "sings", "reads", "cooks", "sleeps", "runs")
    places = ("kitchen", "park", "shop", "ward", "museum", "bus", "pool", "church")
    return [
        Precedent(source=source, scene=f"Somebody {deed} in the {place} of town {source}.", action=f"Greet {place}.")
        for source in "abc"
        for deed in deeds
        for place in places
    ]


def test_beyond_the_bound_the_same_is_found_and_never_of_the_same_source(
    sentences: SentenceEncoder, many: list[Precedent], tmp_path: Path
) -> None:
    exact = PrecedentIndex.of(many, sentences)
    PrecedentIndex.of(many, sentences, exact_up_to=20).save(tmp_path / "index")
    approximate = PrecedentIndex.load(tmp_path / "index", exact_up_to=20)
    hits = 0
    for one in many[::7]:
        found = approximate.query(one.scene, sentences, not_of=one.source)
        assert len(found) == 5
        assert all(precedent.source != one.source for precedent, _ in found)
        right = {precedent.scene for precedent, _ in exact.query(one.scene, sentences, not_of=one.source)}
        hits += len(right & {precedent.scene for precedent, _ in found})
    assert hits >= 0.7 * 5 * len(many[::7])


def test_cells_are_read_again_and_not_made_again(
    sentences: SentenceEncoder, many: list[Precedent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = PrecedentIndex.of(many, sentences, exact_up_to=20)
    made.save(tmp_path)
    monkeypatch.setattr("action_selector.retrieve.nearest._centres", lambda *_: pytest.fail("cells were made again"))
    loaded = PrecedentIndex.load(tmp_path, exact_up_to=20)
    assert loaded.query(many[0].scene, sentences) == made.query(many[0].scene, sentences)
    others = (tmp_path / "cells.npz").read_bytes()
    PrecedentIndex.of(many[:100], sentences).save(tmp_path)
    assert not (tmp_path / "cells.npz").exists()
    (tmp_path / "cells.npz").write_bytes(others)
    with pytest.raises(PrecedentError, match="other precedents"):
        PrecedentIndex.load(tmp_path, exact_up_to=20)
    (tmp_path / "cells.npz").write_bytes(b"PK")
    with pytest.raises(PrecedentError, match="no index"):
        PrecedentIndex.load(tmp_path, exact_up_to=20)


def test_more_than_an_index_holds_are_refused(
    sentences: SentenceEncoder, many: list[Precedent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("action_selector.retrieve.precedents.MOST_ENTRIES", 10)
    with pytest.raises(PrecedentError, match="an index holds 10"):
        PrecedentIndex.of(many, sentences)
