"""A model's own files say what it is; what cannot be used is refused with a remedy."""

import contextlib
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.models.find_model import FoundModel, find_model
from norm_core.models.manifest import Task
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from tests.norm_core.models.tiny_files import (
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


GGUF_VALUES = st.integers(0, 40) | st.text(max_size=3) | st.lists(st.integers(0, 9), min_size=1, max_size=2)


def gguf(folder: Path, name: str, **changes: object) -> Path:
    write_gguf(folder / name, {**METADATA, **changes}, SHAPES)
    return folder / name


def found(folder: Path) -> FoundModel:
    return find_model(folder, sorted(path.name for path in folder.iterdir()))


def test_a_language_checkpoint_states_its_size_and_limits(tmp_path: Path) -> None:
    model = found(write_checkpoint(tmp_path / "tiny"))
    assert model.task is Task.LANGUAGE
    assert model.files == ("config.json", "model.safetensors", "tokenizer.json")
    assert model.fields == {
        "quantization": "bf16",
        "kv_bytes_per_token": 2 * 2 * 2 * 16 * 2,
        "context_tokens": 8192,
        "max_images": 0,
        "parameters_million": 0.015,
    }


def test_a_vision_checkpoint_is_read_by_its_text_part(tmp_path: Path) -> None:
    text = {"num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 8, "max_position_embeddings": 512}
    model = found(write_checkpoint(tmp_path / "tiny", vision_config={"depth": 1}, text_config=text))
    assert model.task is Task.VISION_LANGUAGE
    assert (model.fields["kv_bytes_per_token"], model.fields["context_tokens"]) == (2 * 3 * 2 * 8 * 2, 512)
    assert model.fields["max_images"] == 15


def test_a_gguf_file_states_its_limits(tmp_path: Path) -> None:
    gguf(tmp_path, "tiny-q4.gguf")
    model = found(tmp_path)
    assert (model.task, model.files) == (Task.LANGUAGE, ("tiny-q4.gguf",))
    assert (model.fields["context_tokens"], model.fields["licence"]) == (1024, "apache-2.0")


@given(st.dictionaries(st.sampled_from([*CONFIG, "text_config", "quantization_config", "vision_config"]), JSON))
def test_no_configuration_leads_to_another_error(changes: dict[str, object]) -> None:
    """Whatever stands in config.json, it is used, or refused for a user."""
    with TemporaryDirectory() as folder, contextlib.suppress(ConfigError):
        assert found(write_checkpoint(Path(folder, "tiny"), **changes)).task in set(Task)


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
            assert find_model(path.parent, ["a.gguf"]).files == ("a.gguf",)


def test_lists_in_lists_are_refused_however_deep_they_are(tmp_path: Path) -> None:
    nested = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    (tmp_path / "a.gguf").write_bytes(nested + struct.pack("<IQ", 9, 1) * 5000)
    with pytest.raises(ConfigError, match="it holds a list of 1 lists"):
        found(tmp_path)


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        ({"config.json": "[", "model.safetensors": ""}, "is not a configuration of a model"),
        ({"mmproj-tiny.gguf": ""}, "start llama-server with them and give its address"),
        (
            {"a-00001-of-00002.gguf": "", "a-00002-of-00002.gguf": ""},
            "one GGUF file of a language model is needed; choose it",
        ),
        (
            {"a.gguf": "<html>you are not"},
            "is not a GGUF file, because it begins with b'<html>you are no'; name another",
        ),
        ({"a.gguf": "version https://git-lfs.github.com/spec/v1"}, "is not a GGUF file.*; fetch it with git lfs pull"),
        ({}, "its files are not a language model; name a folder"),
    ],
)
def test_unusable_files_are_refused_with_a_remedy(contents: dict[str, str], complaint: str, tmp_path: Path) -> None:
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=complaint):
        found(tmp_path)
