"""The nearest of many unit vectors by cosine: all compared up to a bound, beyond it only the likeliest cells."""

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record

EXACT_UP_TO = 100_000
MOST_ENTRIES = 1_000_000  # 2 GB of vectors of 512 dimensions
# Of the cells, the share that is looked into; benchmarks/selector/nearest.py measures what that misses.
PROBED = 0.1
_ROUNDS = 6
_SAMPLED_PER_CELL = 40

Floats = NDArray[np.float32]


@record
class Cells:
    """Rows by the cell that they lie in: those of cell n are order[starts[n] : starts[n + 1]]."""

    centres: Floats
    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, vectors: Floats) -> "Cells":
        """As many cells as the square root of the rows; the same rows give the same cells."""
        centres = _centres(vectors, int(len(vectors) ** 0.5))
        cell_of = _cells(vectors, centres)
        order = np.argsort(cell_of, kind="stable")
        return cls(centres=centres, order=order, starts=np.searchsorted(cell_of[order], np.arange(len(centres) + 1)))

    def hold(self, vectors: Floats) -> bool:
        """Whether these are cells of just so many rows of that width."""
        return (
            self.centres.ndim == 2
            and self.centres.shape[1:] == vectors.shape[1:]
            and np.array_equal(np.sort(self.order), np.arange(len(vectors)))
            and len(self.starts) == len(self.centres) + 1
            and (self.starts[0], self.starts[-1]) == (0, len(vectors))
            and bool((np.diff(self.starts) >= 0).all())
        )


class Nearest:
    """An index over rows of length one. It is made anew, not changed, where entries are added."""

    def __init__(
        self, vectors: Floats, exact_up_to: int = EXACT_UP_TO, probed: float = PROBED, cells: Cells | None = None
    ) -> None:
        if len(vectors) > MOST_ENTRIES:
            raise ValueError(f"{len(vectors)} entries are more than the {MOST_ENTRIES} that an index holds")
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self._probed = probed
        self.cells = (cells or Cells.of(self.vectors)) if len(vectors) > exact_up_to else None

    def to(self, vector: Floats, count: int, allowed: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """The places of the nearest rows with their cosines, the nearest first and of equals the first."""
        places = self._within_reach(vector, count, allowed)
        cosines = self.vectors[places] @ vector
        best = np.lexsort((places, -cosines))[:count]
        return [(int(places[at]), float(cosines[at])) for at in best]

    def _within_reach(self, vector: Floats, count: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.intp]:
        """What is allowed of all rows, or of the nearest cells, and of more cells where those hold too few."""
        if self.cells is None:
            return np.arange(len(self.vectors)) if allowed is None else np.flatnonzero(allowed)
        cells = self.cells
        probed = max(1, round(self._probed * len(cells.centres)))
        found: list[NDArray[np.intp]] = []
        for number, cell in enumerate(np.argsort(-(cells.centres @ vector), kind="stable")):
            if number >= probed and sum(map(len, found)) >= count:
                break
            places = cells.order[cells.starts[cell] : cells.starts[cell + 1]]
            found.append(places if allowed is None else places[allowed[places]])
        return np.concatenate(found)


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
