"""Index scenes with a known right action, and retrieve them by similarity, never from the same source."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from action_selector.retrieve.likeness import SentenceEncoding
from action_selector.text_safety.injection_filter import strip_instructions
from norm_core.engines.sentences.sentence_encoder import COSINE_DIGITS
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM

NEAREST = 5
MOST_ENTRIES = 1_000_000  # 2 GB of vectors with 512 dimensions
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


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
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
        entries = tuple(islice(precedents, MOST_ENTRIES + 1))
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
            raise PrecedentError(f"{folder}: there is no such index; make it with {PROGRAM} norms index")
        try:
            about = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            vectors = np.load(folder / "vectors.npy", allow_pickle=False)
            precedents = read_precedents(folder / "precedents.jsonl")
            return cls(precedents, vectors, str(about["weights_sha256"]))
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise PrecedentError(
                f"{folder}: is no readable index ({error}); make it again with {PROGRAM} norms index"
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
    if count > MOST_ENTRIES:
        raise PrecedentError(f"an index holds {MOST_ENTRIES} precedents: split them, as by place")


def read_precedents(path: Path) -> list[Precedent]:
    """Read precedents from JSONL: source, scene, action and optionally justification per line."""
    precedents = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PrecedentError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            precedents.append(Precedent(**_Entry.model_validate_json(line).model_dump()))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the line"
            raise PrecedentError(f"{path}, line {number}: {where}: {fault['msg']}") from error
    return precedents


def write_precedents(path: Path, precedents: Iterable[Precedent]) -> None:
    """Write precedents as JSONL, the inverse of read_precedents."""
    with path.open("w", encoding="utf-8") as file:
        for precedent in precedents:
            entry = _Entry(
                source=precedent.source,
                scene=precedent.scene,
                action=precedent.action,
                justification=precedent.justification,
            )
            file.write(entry.model_dump_json() + "\n")


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
