"""A sentence encoder written out as ONNX says what the same weights say worked out plainly."""

from pathlib import Path

import numpy as np
import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import open_session
from norm_core.engines.sentences.sentence_encoder import EncoderBackend, OnnxSentences
from norm_core.models.bert_onnx import read_safetensors, write_onnx
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import EngineContract
from tests.norm_core.engines.tiny_bert import WORDS, encoded, write_tiny_bert

pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tiny-bert")
    write_tiny_bert(made)
    write_onnx(made, made / "model.onnx")
    return made


class TestOnnxEncoder(EngineContract):
    @pytest.fixture
    def engine(self, folder: Path) -> Engine:
        return Engine(EncoderBackend(OnnxSentences(folder, "0" * 64, most_tokens=40), "tiny-bert"), WallClock())


@pytest.mark.parametrize("length", [1, 2, 17, 40])
def test_the_graph_is_the_model(folder: Path, tmp_path: Path, length: int) -> None:
    tensors = write_tiny_bert(tmp_path)
    tokens = [(7 * place + length) % WORDS for place in range(length)]
    vector = open_session(folder / "model.onnx").run(["vector"], {"tokens": np.array([tokens], np.int64)})[0][0]
    assert np.allclose(vector, encoded(tensors, tokens), atol=1e-5)


def test_long_sentences_are_cut_and_odd_ones_taken(folder: Path) -> None:
    sentences = OnnxSentences(folder, "", most_tokens=40, remembered=2)
    vectors = sentences.encode(["Greet " * 500, "Greet " * 40, "\ud83d", "你好", "?"])
    assert np.array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert sentences.encode([]).shape[0] == 0


@pytest.mark.parametrize("kept", [0, 6, 200, -1])
def test_a_checkpoint_cut_off_is_named(folder: Path, tmp_path: Path, kept: int) -> None:
    cut = tmp_path / "model.safetensors"
    cut.write_bytes((folder / "model.safetensors").read_bytes()[:kept])
    with pytest.raises(EngineFailedError, match=r"model\.safetensors: is no whole safetensors file"):
        read_safetensors(cut)


def test_another_kind_of_model_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(EngineFailedError, match="only BERT with GELU is written out, not llama"):
        write_onnx(tmp_path, tmp_path / "model.onnx")
