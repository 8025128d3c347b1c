"""Compare texts by meaning, and match two lists one to one."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS

Matrix = NDArray[np.float64]
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)|[\r\n]+")


class SentenceEncoding(Protocol):
    """An encoder that returns unit vectors of sentences, like SentenceEncoder."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per sentence."""


def similarity(sentences: SentenceEncoding, rows: Sequence[str], columns: Sequence[str]) -> Matrix:
    """Compute how alike each row and column are: the largest cosine of whole texts and of their sentences.

    So a sentence that somebody adds to a text hides none of its others. A text that is all instructions scores zero.
    """
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    row_parts, column_parts = [_parts(text) for text in rows], [_parts(text) for text in columns]
    flat_rows, flat_columns = list(chain(*row_parts)), list(chain(*column_parts))
    alike = sentences.encode(flat_rows).astype(float) @ sentences.encode(flat_columns).astype(float).T
    alike[[not text for text in flat_rows], :] = 0.0
    alike[:, [not text for text in flat_columns]] = 0.0
    alike = np.maximum.reduceat(alike, _starts(row_parts), axis=0)
    alike = np.maximum.reduceat(alike, _starts(column_parts), axis=1)
    return np.asarray(np.clip(alike, -1.0, 1.0).round(COSINE_DIGITS), np.float64)


def encode_ahead(sentences: SentenceEncoding, texts: Iterable[str]) -> None:
    """Fill the encoder's cache in one batch, which takes half the time of single calls. No result depends on it."""
    sentences.encode(list(dict.fromkeys(chain.from_iterable(map(_parts, texts)))))


def _parts(text: str) -> list[str]:
    """Return a text without instructions, and its sentences if it has several."""
    whole = strip_instructions(text)
    parts = [part.strip() for part in _SENTENCE_END.split(whole) if part.strip()]
    return [whole, *parts] if len(parts) > 1 else [whole]


def _starts(parts: Sequence[Sequence[str]]) -> NDArray[np.intp]:
    return np.cumsum([0, *map(len, parts[:-1])])


def match_pairs(gains: Matrix, least: float) -> dict[int, int]:
    """Match rows to columns one to one for the greatest total gain. Ignores gains below `least`.

    Uses the Hungarian method, because exhaustive search would take hours for forty candidates.
    """
    if not gains.size:
        return {}
    worth = np.where(gains >= least, gains - least + 1e-9, 0.0)
    if worth.shape[0] > worth.shape[1]:
        return {row: column for column, row in _assign(-worth.T).items() if worth[row, column] > 0}
    return {row: column for row, column in _assign(-worth).items() if worth[row, column] > 0}


def _assign(costs: Matrix) -> dict[int, int]:
    """Find the cheapest column of each row. Needs at least as many columns as rows. Index 0 is a sentinel."""
    rows, columns = costs.shape
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    taker = np.zeros(columns + 1, int)
    for row in range(1, rows + 1):
        taker[0], at = row, 0
        least, came_from, done = np.full(columns + 1, np.inf), np.zeros(columns + 1, int), np.zeros(columns + 1, bool)
        while taker[at]:
            done[at] = True
            slack = costs[taker[at] - 1] - row_price[taker[at]] - column_price[1:]
            nearer = ~done[1:] & (slack < least[1:])
            least[1:][nearer], came_from[1:][nearer] = slack[nearer], at
            following = int(np.argmin(np.where(done[1:], np.inf, least[1:]))) + 1
            delta = least[following]
            row_price[taker[done]] += delta
            column_price[done] -= delta
            least[~done] -= delta
            at = following
        while at:
            before = int(came_from[at])
            taker[at], at = taker[before], before
    return {int(taker[column]) - 1: column - 1 for column in range(1, columns + 1) if taker[column]}
