"""Compare texts by meaning, and retrieve precedents: scenes whose right action is known."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import COSINE_DECIMALS
from norm_core.files.plain_file import read_plain_file
from norm_core.records.json_codec import RecordError, from_json
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Matrix = NDArray[np.float64]
# Number of precedents that are retrieved unless stated otherwise.
NEAREST = 5
# A million vectors of 512 dimensions take 2 GB.
MAX_ENTRIES = 1_000_000
MAX_FILE_BYTES = 4 << 30
# Scenes are encoded in batches, so that an encoder need not hold all of them.
_BATCH_SIZE = 2_048
# Costs that differ by less count as equal.
_EQUAL = 1e-9
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)|[\r\n]+")


class SentenceEncoding(Protocol):
    """An encoder that returns unit vectors of sentences, like SentenceEncoder."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per sentence."""


def compute_similarity(
    sentences: SentenceEncoding, rows: Sequence[str], columns: Sequence[str], simplify: Callable[[str], str] = str
) -> Matrix:
    """Compute the similarity of each row and column: the largest cosine of the whole texts and of their sentences.

    So a sentence that somebody adds to a text hides none of its others. A text that is all instructions scores zero.
    `simplify` changes each text and sentence before it is encoded.
    """
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    row_parts = [list(map(simplify, _split_sentences(text))) for text in rows]
    column_parts = [list(map(simplify, _split_sentences(text))) for text in columns]
    flat_rows = list(chain(*row_parts))
    flat_columns = list(chain(*column_parts))
    cosines = sentences.encode(flat_rows).astype(float) @ sentences.encode(flat_columns).astype(float).T
    cosines[[not text for text in flat_rows], :] = 0.0
    cosines[:, [not text for text in flat_columns]] = 0.0
    cosines = np.maximum.reduceat(cosines, _compute_starts(row_parts), axis=0)
    cosines = np.maximum.reduceat(cosines, _compute_starts(column_parts), axis=1)
    return np.asarray(np.clip(cosines, -1.0, 1.0).round(COSINE_DECIMALS), np.float64)


def encode_ahead(sentences: SentenceEncoding, texts: Iterable[str]) -> None:
    """Fill the encoder's cache in one batch, which takes half the time of single calls. No result depends on it."""
    sentences.encode(list(dict.fromkeys(chain.from_iterable(map(_split_sentences, texts)))))


def _split_sentences(text: str) -> list[str]:
    """Return a text without its instructions, and also its sentences if it has several."""
    whole = strip_instructions(text)
    parts = [part.strip() for part in _SENTENCE_END.split(whole) if part.strip()]
    return [whole, *parts] if len(parts) > 1 else [whole]


def _compute_starts(parts: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    """Compute the index of the first part of each text in the list of all parts."""
    return np.cumsum([0, *map(len, parts[:-1])])


def match_pairs(gains: Matrix, threshold: float) -> dict[int, int]:
    """Match rows to columns one to one for the greatest total gain. Ignores gains below `threshold`.

    Uses the Hungarian method, because exhaustive search would take hours for forty candidates.
    """
    if not gains.size:
        return {}
    excess = np.where(gains >= threshold, gains - threshold + _EQUAL, 0.0)
    if excess.shape[0] > excess.shape[1]:
        return {row: column for column, row in _assign(-excess.T).items() if excess[row, column] > 0}
    return {row: column for row, column in _assign(-excess).items() if excess[row, column] > 0}


def _assign(costs: Matrix) -> dict[int, int]:
    """Assign a column to each row for the lowest total cost. Needs at least as many columns as rows.

    Rows and columns count from 1 here. Row 0 means "not assigned"; column 0 is where each search starts.
    """
    row_count, column_count = costs.shape
    row_prices = np.zeros(row_count + 1)
    column_prices = np.zeros(column_count + 1)
    row_of_column = np.zeros(column_count + 1, int)
    for row in range(1, row_count + 1):
        # Search the cheapest path from this row to a free column; it moves the rows on the path.
        row_of_column[0] = row
        column = 0
        min_slacks = np.full(column_count + 1, np.inf)
        previous = np.zeros(column_count + 1, int)
        is_done = np.zeros(column_count + 1, bool)
        while row_of_column[column]:
            is_done[column] = True
            slacks = costs[row_of_column[column] - 1] - row_prices[row_of_column[column]] - column_prices[1:]
            is_lower = ~is_done[1:] & (slacks < min_slacks[1:])
            min_slacks[1:][is_lower] = slacks[is_lower]
            previous[1:][is_lower] = column
            column = int(np.argmin(np.where(is_done[1:], np.inf, min_slacks[1:]))) + 1
            change = min_slacks[column]
            row_prices[row_of_column[is_done]] += change
            column_prices[is_done] -= change
            min_slacks[~is_done] -= change
        while column:
            row_of_column[column] = row_of_column[previous[column]]
            column = int(previous[column])
    return {int(row) - 1: column for column, row in enumerate(row_of_column[1:]) if row}


class PrecedentError(TactfulError):
    """A file of precedents cannot be used."""


@record
class Precedent:
    """A scene from a video or place, and its right action; an empty one means that no offered action was right."""

    source: str
    scene: str
    action: str
    justification: str = ""


class PrecedentIndex:
    """Precedents with the vectors of their scenes."""

    def __init__(self, precedents: Sequence[Precedent], vectors: NDArray[np.float32]) -> None:
        self.precedents = tuple(precedents)
        self._vectors = np.ascontiguousarray(vectors, np.float32)
        self._sources = np.array([precedent.source for precedent in precedents])

    @classmethod
    def build(cls, precedents: Iterable[Precedent], sentences: SentenceEncoding) -> "PrecedentIndex":
        """Build an index, which encodes each scene once. Raises PrecedentError if there are none or too many."""
        entries = tuple(islice(precedents, MAX_ENTRIES + 1))
        if not entries:
            raise PrecedentError("there are no precedents to index")
        if len(entries) > MAX_ENTRIES:
            raise PrecedentError(f"an index holds at most {MAX_ENTRIES} precedents: split them, for example by place")
        scenes = [strip_instructions(precedent.scene) for precedent in entries]
        parts = [sentences.encode(scenes[start : start + _BATCH_SIZE]) for start in range(0, len(scenes), _BATCH_SIZE)]
        return cls(entries, np.concatenate(parts))

    def query(
        self, scene: str, sentences: SentenceEncoding, *, not_of: str = "", count: int = NEAREST
    ) -> list[tuple[Precedent, float]]:
        """Retrieve the precedents most similar to the scene, with cosines. Skips those of the source `not_of`."""
        words = strip_instructions(scene)
        if not words:
            return []
        allowed = self._sources != not_of if not_of else None
        matches = find_nearest(self._vectors, sentences.encode([words])[0], count, allowed)
        return [(self.precedents[index], cosine) for index, cosine in matches]


def read_precedents(path: Path) -> list[Precedent]:
    """Read precedents from JSONL: source, scene, action and optionally justification per line."""
    precedents = []
    try:
        lines = read_plain_file(path, MAX_FILE_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PrecedentError(f"{path}: cannot be read: {error}") from error
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            precedents.append(from_json(Precedent, line))
        except RecordError as error:
            raise PrecedentError(f"{path}, line {line_number}: {error}") from error
    return precedents


def find_nearest(
    vectors: NDArray[np.float32], query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """Find the `count` most similar rows with their cosines, the most similar first. The lower row wins a tie."""
    cosines = (vectors @ query).astype(float).round(COSINE_DECIMALS)
    rows = np.arange(len(vectors)) if allowed is None else np.flatnonzero(allowed)
    if 0 < count < len(rows):
        # Sort only the rows from the threshold on, which are few of a million.
        threshold = np.partition(cosines[rows], len(rows) - count)[len(rows) - count]
        rows = rows[cosines[rows] >= threshold]
    best = rows[np.argsort(-cosines[rows], kind="stable")][:count]
    return [(int(row), float(cosines[row])) for row in best]
