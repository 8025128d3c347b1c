"""A model's own files say what it is; what cannot be used is refused with a remedy."""

import contextlib
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.models.bert_onnx import write_onnx
from norm_core.models.detection.checkpoint import facts_of_config
from norm_core.models.detection.find_model import find_model
from norm_core.models.manifest import EngineKind, Task
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from tests.norm_core.engines.tiny_bert import write_tiny_bert
from tests.norm_core.models.detection.tiny_files import (
    CONFIG,
    METADATA,
    SHAPES,
    write_checkpoint,
    write_gguf,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(list(CONFIG)), inner, max_size=2),
    max_leaves=4,
)


Make = Callable[[Path], Path]
GGUF_VALUES = st.integers(0, 40) | st.text(max_size=3) | st.lists(st.integers(0, 9), min_size=1, max_size=2)


def gguf(folder: Path, name: str, **changes: object) -> Path:
    write_gguf(folder / name, {**METADATA, **changes}, SHAPES)
    return folder / name


def test_a_language_checkpoint_states_its_size_and_limits(tmp_path: Path) -> None:
    found = find_model(write_checkpoint(tmp_path / "tiny"))
    assert (found.engine, found.task) == (EngineKind.TRANSFORMERS, Task.LANGUAGE)
    assert found.files == ("config.json", "model.safetensors", "tokenizer.json")
    assert found.fields == {
        "quantization": "bf16",
        "kv_bytes_per_token": 2 * 2 * 2 * 16 * 2,
        "context_tokens": 8192,
        "max_images": 0,
        "parameters_million": 0.015,
        "precise_million": 0.006,
        "licence": "mit",
    }


def test_a_vision_checkpoint_is_read_by_its_text_part(tmp_path: Path) -> None:
    text = {"num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 8, "max_position_embeddings": 512}
    found = find_model(write_checkpoint(tmp_path / "tiny", vision_config={"depth": 1}, text_config=text))
    assert found.task is Task.VISION_LANGUAGE
    assert (found.fields["kv_bytes_per_token"], found.fields["context_tokens"]) == (2 * 3 * 2 * 8 * 2, 512)
    assert found.fields["max_images"] == 15


def test_a_quantized_checkpoint_names_its_method(tmp_path: Path) -> None:
    found = find_model(write_checkpoint(tmp_path / "tiny", quantization_config={"quant_method": "awq"}))
    assert found.fields["quantization"] == "awq"
    assert "parameters_million" not in found.fields


def test_a_gguf_file_states_its_size_and_limits(tmp_path: Path) -> None:
    found = find_model(gguf(tmp_path, "tiny-q4.gguf"))
    assert (found.engine, found.task, found.files) == (EngineKind.TRANSFORMERS, Task.LANGUAGE, ("tiny-q4.gguf",))
    assert found.fields == {
        "quantization": "q4_k_m",
        "parameters_million": None,  # too few to be stated in millions
        "kv_bytes_per_token": 2 * 2 * 2 * 16 * 2,
        "context_tokens": 1024,
        "max_images": 0,
        "licence": "apache-2.0",
    }


def test_one_gguf_of_several_is_chosen(tmp_path: Path) -> None:
    for name in ("tiny-q4.gguf", "tiny-q8.gguf"):
        gguf(tmp_path, name)
    assert find_model(tmp_path, ["*q8*"]).files == ("tiny-q8.gguf",)


@pytest.mark.parametrize(
    "names", [("tiny.gguf", "mmproj-tiny.gguf"), ("a-00001-of-00002.gguf", "a-00002-of-00002.gguf")]
)
def test_a_projector_and_a_split_model_are_for_a_server(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        gguf(tmp_path, name)
    with pytest.raises(ConfigError, match="start llama-server with them, then give its address"):
        find_model(tmp_path)


def test_an_onnx_graph_of_tokens_is_a_sentence_encoder(tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "bert")
    found = find_model(tmp_path / "bert")
    assert (found.engine, found.task) == (EngineKind.ENCODER, Task.SENTENCE_MEANING)
    write_onnx(tmp_path / "bert", tmp_path / "model.onnx")
    (tmp_path / "bert/tokenizer.json").rename(tmp_path / "tokenizer.json")
    found = find_model(tmp_path / "model.onnx")
    assert (found.engine, found.files) == (EngineKind.ENCODER, ("model.onnx", "tokenizer.json"))


@given(st.dictionaries(st.sampled_from([*CONFIG, "text_config", "quantization_config", "vision_config"]), JSON))
def test_no_configuration_leads_to_another_error(changes: dict[str, object]) -> None:
    """Whatever stands in config.json, it is used, or refused for a user."""
    with contextlib.suppress(ConfigError):
        assert facts_of_config({**CONFIG, **changes}, "config.json")["task"] in set(Task)


@given(
    st.dictionaries(st.integers(0, 600), st.integers(0, 255), max_size=6),
    st.integers(0, 700),
    st.dictionaries(st.sampled_from(["general.file_type", "general.alignment", "tiny.block_count"]), GGUF_VALUES),
)
def test_no_damage_of_a_gguf_leads_to_another_error(
    changes: dict[int, int], length: int, metadata: dict[str, Any]
) -> None:
    """A file that is whole but for some bytes, its end, or a value of another type than it should have."""
    with TemporaryDirectory() as folder:
        path = gguf(Path(folder), "a.gguf", **metadata)
        content = bytearray(path.read_bytes())
        for place, byte in changes.items():
            content[place] = byte
        path.write_bytes(content[:-length] if length else content)
        with contextlib.suppress(TactfulError):
            assert find_model(path).files == ("a.gguf",)


def test_a_file_that_lacks_its_last_byte_is_no_whole_file(tmp_path: Path) -> None:
    file = gguf(tmp_path, "tiny.gguf")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    complaint = rf"GGUF file \(it has {len(content) - 1} bytes, and its tensors need {len(content)}\); download it"
    with pytest.raises(ConfigError, match=complaint):
        find_model(tmp_path)


def test_lists_in_lists_are_refused_however_deep_they_are(tmp_path: Path) -> None:
    nested = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    (tmp_path / "a.gguf").write_bytes(nested + struct.pack("<IQ", 9, 1) * 5000)
    with pytest.raises(ConfigError, match="it holds a list of 1 lists"):
        find_model(tmp_path)


def checkpoint(lacks: str = "", holds: Mapping[str, str] = MappingProxyType({}), **changes: Any) -> Make:
    """A folder as a hub's repository holds it, but for a file and an entry of its configuration."""

    def make(folder: Path) -> Path:
        made = write_checkpoint(folder / "tiny", **changes)
        if lacks:
            (made / lacks).unlink()
        for name, content in holds.items():
            (made / name).write_text(content)
        return made

    return make


def ggufs(*names: str) -> Make:
    def make(folder: Path) -> Path:
        for name in names:
            gguf(folder, name)
        return folder

    return make


def file(name: str, content: str) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    return make


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (checkpoint(holds={"adapter_config.json": "{}"}), "LoRA adapter.*add the merged folder"),
        (checkpoint("model.safetensors"), r"no \.safetensors file; save the model with"),
        (checkpoint("tokenizer.json"), "no tokenizer; copy tokenizer.json"),
        (
            checkpoint(holds={"model.safetensors.index.json": '{"weight_map": {"b": "model-2.safetensors"}}'}),
            r"model-2\.safetensors is missing.*download the whole model",
        ),
        (checkpoint(holds={"model.safetensors": "cut"}), "is no whole safetensors file: .*; download it again"),
        (
            checkpoint(architectures=["WhisperForConditionalGeneration"], model_type="whisper"),
            "a WhisperForConditionalGeneration neither writes nor scores text; .*ct2-transformers-converter",
        ),
        (ggufs("a.gguf", "b.gguf"), r"one GGUF file is needed, not a\.gguf, b\.gguf; choose with --include NAME"),
        (file("a.gguf", "<html>you are not"), "is no GGUF file, as it begins with b'<html>you are no'; name another"),
        (file("a.gguf", "version https://git-lfs.github.com/spec/v1"), "is no GGUF file.*; fetch it with git lfs pull"),
        (file("model.safetensors", ""), "is one file of a checkpoint; add its folder"),
        (lambda folder: folder, "holds no model that is known: .*; name the folder"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_remedy(make: Make, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(TactfulError, match=complaint):
        find_model(make(tmp_path))
