"""Compare texts by meaning, and retrieve scenes with a known right action, never from the same source."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS
from norm_core.files.plain_file import open_plain_file, read_plain_file
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Matrix = NDArray[np.float64]
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*(?=\S)|[\r\n]+")


class SentenceEncoding(Protocol):
    """An encoder that returns unit vectors of sentences, like SentenceEncoder."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per sentence."""


def similarity(
    sentences: SentenceEncoding, rows: Sequence[str], columns: Sequence[str], simplify: Callable[[str], str] = str
) -> Matrix:
    """Compute how alike each row and column are: the largest cosine of whole texts and of their sentences.

    So a sentence that somebody adds to a text hides none of its others. A text that is all instructions scores zero.
    `simplify` changes each of these before it is encoded.
    """
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    row_parts, column_parts = ([list(map(simplify, _parts(text))) for text in texts] for texts in (rows, columns))
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


NEAREST = 5
MAX_ENTRIES = 1_000_000  # 2 GB of vectors with 512 dimensions
MAX_INDEX_BYTES = 4 << 30
_AT_ONCE = 2_048  # scenes per batch, so that an encoder need not hold all of them


class PrecedentError(TactfulError):
    """A file or index of precedents cannot be used."""


@record
class Precedent:
    """One scene. `source` is its video or place; an empty action means that no offered action was right."""

    source: str
    scene: str
    action: str
    justification: str = ""


class PrecedentIndex:
    """Precedents with the vectors of their scenes."""

    def __init__(
        self,
        precedents: Sequence[Precedent],
        vectors: NDArray[np.float32],
        weights_sha256: str = "",
    ) -> None:
        """Raises PrecedentError if the counts of precedents and vectors differ, or are above the limit."""
        if len(precedents) != len(vectors):
            raise PrecedentError(
                f"the index holds {len(precedents)} precedents and {len(vectors)} vectors: make it anew"
            )
        _check_count(len(precedents))
        self.precedents, self.weights_sha256 = tuple(precedents), weights_sha256
        self._vectors = np.ascontiguousarray(vectors, np.float32)
        self._sources = np.array([precedent.source for precedent in precedents])

    @classmethod
    def of(
        cls, precedents: Iterable[Precedent], sentences: SentenceEncoding, weights_sha256: str = ""
    ) -> "PrecedentIndex":
        """Build an index; encodes each scene once."""
        entries = tuple(islice(precedents, MAX_ENTRIES + 1))
        if not entries:
            raise PrecedentError("there are no precedents to index")
        _check_count(len(entries))
        scenes = [strip_instructions(precedent.scene) for precedent in entries]
        parts = [sentences.encode(scenes[start : start + _AT_ONCE]) for start in range(0, len(scenes), _AT_ONCE)]
        return cls(entries, np.concatenate(parts), weights_sha256)

    @classmethod
    def load(cls, folder: Path) -> "PrecedentIndex":
        """Read an index that `save` wrote. Raises PrecedentError."""
        if not folder.is_dir():
            raise PrecedentError(f"{folder}: there is no such file or index; name a JSONL file of precedents")
        try:
            about = json.loads(read_plain_file(folder / "index.json", 1 << 20))
            with open_plain_file(folder / "vectors.npy", MAX_INDEX_BYTES) as file:
                vectors = np.load(file, allow_pickle=False)
            precedents = read_precedents(folder / "precedents.jsonl")
            return cls(precedents, vectors, str(about["weights_sha256"]))
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise PrecedentError(
                f"{folder}: is not a readable index ({error}); name a JSONL file of precedents"
            ) from error

    def save(self, folder: Path) -> None:
        """Write the precedents and their vectors. Overwrites an existing index."""
        folder.mkdir(parents=True, exist_ok=True)
        write_precedents(folder / "precedents.jsonl", self.precedents)
        np.save(folder / "vectors.npy", self._vectors, allow_pickle=False)
        about = {"entries": len(self.precedents), "weights_sha256": self.weights_sha256}
        (folder / "index.json").write_text(json.dumps(about) + "\n", encoding="utf-8")

    def query(
        self, scene: str, sentences: SentenceEncoding, *, not_of: str = "", count: int = NEAREST
    ) -> list[tuple[Precedent, float]]:
        """Retrieve the precedents most similar to the scene, with cosines. Skips the source `not_of`."""
        words = strip_instructions(scene)
        if not words:
            return []
        allowed = self._sources != not_of if not_of else None
        matches = nearest(self._vectors, sentences.encode([words])[0], count, allowed)
        return [(self.precedents[place], cosine) for place, cosine in matches]


def _check_count(count: int) -> None:
    if count > MAX_ENTRIES:
        raise PrecedentError(f"an index holds {MAX_ENTRIES} precedents: split them, as by place")


def read_precedents(path: Path) -> list[Precedent]:
    """Read precedents from JSONL: source, scene, action and optionally justification per line."""
    precedents = []
    try:
        lines = read_plain_file(path, MAX_INDEX_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PrecedentError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            precedents.append(from_json(Precedent, line))
        except RecordError as error:
            raise PrecedentError(f"{path}, line {number}: {error}") from error
    return precedents


def write_precedents(path: Path, precedents: Iterable[Precedent]) -> None:
    """Write precedents as JSONL, the inverse of read_precedents."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{to_json(precedent)}\n" for precedent in precedents)


def nearest(
    vectors: NDArray[np.float32], query: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """Find the `count` most similar rows with their cosines, in falling order. The lower row wins a tie."""
    cosines = (vectors @ query).astype(float).round(COSINE_DIGITS)
    places = np.arange(len(vectors)) if allowed is None else np.flatnonzero(allowed)
    among = cosines[places]
    if 0 < count < len(places):
        least = np.partition(among, len(places) - count)[len(places) - count]
        places = places[among >= least]
    best = places[np.argsort(-cosines[places], kind="stable")][:count]
    return [(int(place), float(cosines[place])) for place in best]
