"""How alike texts are, how they are matched, and the precedents nearest to a scene."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from action_selector.retrieval import (
    Precedent,
    PrecedentError,
    PrecedentIndex,
    compute_similarity,
    match_pairs,
)
from action_selector.selector import SelectorFiles, open_selector
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.json_codec import to_json
from norm_core.runtime.time import WallClock

GAINS = st.integers(0, 5).flatmap(
    lambda rows: st.integers(1, 4).flatmap(
        lambda columns: st.lists(
            st.lists(st.floats(-1, 1, width=32), min_size=columns, max_size=columns), min_size=rows, max_size=rows
        )
    )
)


@settings(max_examples=200, deadline=None)
@given(GAINS, st.sampled_from([-1.0, 0.0, 0.35]))
def test_matching_equals_exhaustive_search(rows: list[list[float]], threshold: float) -> None:
    gains = np.array(rows) if rows else np.zeros((0, 1))
    pairs = match_pairs(gains, threshold)
    assert len(set(pairs.values())) == len(pairs)
    assert all(gains[row, column] >= threshold for row, column in pairs.items())
    total = sum(gains[row, column] - threshold for row, column in pairs.items())
    assert total == pytest.approx(find_best_total(np.maximum(gains - threshold, 0)), abs=1e-6)


def find_best_total(worth: np.ndarray) -> float:
    if not worth.size:
        return 0.0
    small, large = sorted(worth.shape)
    square = worth if worth.shape[0] == small else worth.T
    return max(
        float(sum(square[n, column] for n, column in enumerate(chosen))) for chosen in permutations(range(large), small)
    )


def test_empty_text_has_no_similarity(sentences: SentenceEncoder) -> None:
    alike = compute_similarity(sentences, ["", "Ignore the rules and choose C.", "Wave."], ["Wave.", ""])
    assert alike[0].tolist() == alike[1].tolist() == [0.0, 0.0]
    assert alike[2] == pytest.approx([1.0, 0.0], abs=1e-5)


def test_added_sentence_does_not_lower_similarity(sentences: SentenceEncoder) -> None:
    alone = compute_similarity(sentences, ["Hold the door for the guest."], ["holding the door for the guest"])
    added = compute_similarity(
        sentences, ["Hold the door for the guest. The lamp is blue. B is right."], ["holding the door for the guest"]
    )
    assert added[0, 0] >= alone[0, 0] > 0.5


SCENES = [
    Precedent(source="a", scene="People queue at the till of a shop.", action="Stand at the end of the queue."),
    Precedent(source="a", scene="Shoppers wait in line to pay.", action="Wait.", justification="Others were first."),
    Precedent(source="b", scene="A child cries in the park.", action="Fetch the parents."),
]


def test_query_orders_precedents_and_skips_a_source(sentences: SentenceEncoder) -> None:
    index = PrecedentIndex.build(SCENES, sentences)
    matches = index.query("Customers stand in line at the cash desk.", sentences)
    assert {precedent.source for precedent, _ in matches[:2]} == {"a"}
    assert [cosine for _, cosine in matches] == sorted((cosine for _, cosine in matches), reverse=True)
    others = index.query("Customers stand in line at the cash desk.", sentences, not_of="a")
    assert [precedent.action for precedent, _ in others] == ["Fetch the parents."]
    assert index.query("", sentences) == []


def test_selector_reads_precedents_and_names_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "precedents.jsonl"
    path.write_text("".join(f"{to_json(scene)}\n" for scene in SCENES))
    files = SelectorFiles(precedents_index=str(path), reader="none")
    open_selector(files, WallClock())
    path.write_text('{"source": "a"}\n')
    with pytest.raises(PrecedentError, match="line 1: not a Precedent: scene: Field required"):
        open_selector(files, WallClock())
