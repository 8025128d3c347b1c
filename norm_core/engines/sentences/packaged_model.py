"""The packaged sentence encoder in ONNX Runtime, with the same vector for a sentence in any batch.

The package's numpy code packs every weight again for each sentence, and its last digits depend on the number of
sentences. The embeddings of all tokens are mapped from a cached file that all processes on the machine share.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, open_session
from norm_core.engines.sentences.mapped_arrays import Arrays, hash_file_once, load_mapped_arrays, release_pages
from norm_core.engines.sentences.tokenizer import Tokenizer
from norm_core.files.data_files import shipped_file

# The package stores the embeddings in this many parts, interleaved by token, each with its own scale.
PART_COUNT = 17
GRAPH = shipped_file("norm_core.engines.sentences", "sentence_model.onnx")
# Each convolution: its width in tokens, and the number of tokens before the current one.
ORDERS = ((2, 0), (3, 1), (5, 2))
# The number of values that each convolution returns for a token.
WIDTH = 256
# The limit of tokens in one run, because more take memory and save no time.
MAX_TOKENS = 384
# Sentences of several lengths, which cover every kind of block of a matrix product.
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
    """An encoder with the weights in the folder of a package, sp.model and weights.npz."""

    def __init__(self, resources: Path) -> None:
        """Read the weights. Raises EngineFailedError if they are missing or damaged."""
        try:
            self._tokenizer = Tokenizer(resources / "sp.model")
            file = resources / "weights.npz"
            arrays = load_mapped_arrays(f"{hash_file_once(file)[:16]}.encoder.npy", lambda: _read_weights(file))
        except (OSError, KeyError, ValueError, BadZipFile) as error:
            raise EngineFailedError(
                f"{resources}: the weights of the encoder cannot be read: {error}; install the package again"
            ) from error
        self._table = arrays.pop("table")
        self._scale = arrays.pop("scale")
        self._low = arrays.pop("lo")
        # Always on the CPU, because an answer must not depend on the graphics card.
        self._session = open_session(GRAPH, providers=(CPU,), weights=arrays)
        self._can_batch = True
        separate = np.concatenate([self.encode([probe]) for probe in _PROBES])
        # If sums on this processor depend on neighbouring rows, sentences run one by one.
        self._can_batch = np.array_equal(separate, self.encode(_PROBES))

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._table.shape[1])

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one unit vector per sentence as a row, identical to the last digit in any batch."""
        tokens = [np.array(self._tokenizer.encode(sentence), np.int64) for sentence in sentences]
        rows = [self.run_group(group) for group in self._group_tokens(tokens)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _group_tokens(self, tokens: list[Tokens]) -> Iterator[list[Tokens]]:
        group: list[Tokens] = []
        for ids in tokens:
            if group and (not self._can_batch or sum(map(len, group)) + len(ids) > MAX_TOKENS):
                yield group
                group = []
            group.append(ids)
        if group:
            yield group

    def run_group(self, group: list[Tokens]) -> Vectors:
        """Run the tokens of several sentences at once, and return one vector per sentence."""
        tokens = np.concatenate(group)
        lengths = np.array([len(ids) for ids in group])
        sentence_of = np.repeat(np.arange(len(group)), lengths)
        parts = tokens % PART_COUNT
        inputs = {
            "embedded": self._table[tokens] * self._scale[parts, None] + self._low[parts, None],
            "sentence_of": sentence_of[:, None],
            "lengths": lengths[:, None].astype(np.float32),
        }
        ends = np.cumsum(lengths)[sentence_of][:, None]
        begins = ends - lengths[sentence_of][:, None]
        for order, tokens_before in ORDERS:
            positions = np.arange(len(tokens))[:, None] + np.arange(order) - tokens_before
            inputs[f"places_{order}"] = np.where((positions >= begins) & (positions < ends), positions, len(tokens))
        release_pages(self._table)  # Otherwise, all pages that were ever read count as memory.
        (vectors,) = self._session.run(["vector"], inputs)
        return np.asarray(vectors, np.float32)


def _read_weights(file: Path) -> Arrays:
    """Read the embeddings of the package as one table of tokens, and the weights by their names in the graph.

    The graph joins the projections of the three convolutions.
    """
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    orders = [order for order, _ in ORDERS]
    joined_names = {"proj": "proj", "proj_b": "proj_b", "proj_ln_g": "ln_g", "proj_ln_b": "ln_b"}
    separate_names = [f"{kind}{layer}_{order}" for kind in "wb" for layer in (1, 2) for order in orders]
    separate_names += ["cnn_W", "cnn_b", "ln_g", "ln_b", "d0", "d1", "d2", "d3", "p1", "p3"]
    weights = {
        name: np.concatenate([arrays[f"{prefix}{order}"] for order in orders], -1)
        for name, prefix in joined_names.items()
    }
    weights |= {name: arrays[name] for name in separate_names}
    table = np.stack([arrays[f"q{part + 1}"] for part in range(PART_COUNT)], axis=1)
    return {
        "table": table.reshape(-1, table.shape[-1]),
        "scale": arrays["scale"],
        "lo": arrays["lo"],
        **{name: np.ascontiguousarray(weight, np.float32) for name, weight in weights.items()},
    }
