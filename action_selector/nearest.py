"""The nearest of many unit vectors by cosine: all compared up to a bound, beyond it only the likeliest cells."""

import numpy as np
from numpy.typing import NDArray

EXACT_UP_TO = 100_000
# Of the cells, the share that is looked into; benchmarks/selector/nearest.py measures what that misses.
PROBED = 0.1
_ROUNDS = 6
_SAMPLED_PER_CELL = 40

Floats = NDArray[np.float32]


class Nearest:
    """An index over rows of length one. It is made anew, not changed, where entries are added."""

    def __init__(self, vectors: Floats, exact_up_to: int = EXACT_UP_TO, probed: float = PROBED) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self._probed = probed
        self._centres: Floats | None = None
        if len(vectors) > exact_up_to:
            self._centres = _centres(self.vectors, int(len(vectors) ** 0.5))
            cell_of = _cells(self.vectors, self._centres)
            self._order = np.argsort(cell_of, kind="stable")
            self._starts = np.searchsorted(cell_of[self._order], np.arange(len(self._centres) + 1))

    def to(self, vector: Floats, count: int, allowed: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """The places of the nearest rows with their cosines, the nearest first and of equals the first."""
        places = self._within_reach(vector)
        if allowed is not None:
            places = places[allowed[places]]
        cosines = self.vectors[places] @ vector
        best = np.lexsort((places, -cosines))[:count]
        return [(int(places[at]), float(cosines[at])) for at in best]

    def _within_reach(self, vector: Floats) -> NDArray[np.intp]:
        if self._centres is None:
            return np.arange(len(self.vectors))
        probed = max(1, round(self._probed * len(self._centres)))
        cells = np.argsort(-(self._centres @ vector), kind="stable")[:probed]
        return np.concatenate([self._order[self._starts[cell] : self._starts[cell + 1]] for cell in cells])


def _centres(vectors: Floats, count: int) -> Floats:
    """Spherical k-means over a sample drawn with a fixed seed, so that the same entries give the same index."""
    random = np.random.default_rng(0)
    sample = vectors[random.permutation(len(vectors))[: count * _SAMPLED_PER_CELL]]
    centres = sample[:count].copy()
    for _ in range(_ROUNDS):
        cell_of = _cells(sample, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, cell_of, sample)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), centres).astype(np.float32)
    return centres


def _cells(vectors: Floats, centres: Floats) -> NDArray[np.intp]:
    """The nearest centre of each row, in blocks, as the whole table of cosines would not fit into memory."""
    blocks = [vectors[start : start + 8192] @ centres.T for start in range(0, len(vectors), 8192)]
    return np.concatenate([block.argmax(axis=1) for block in blocks])
