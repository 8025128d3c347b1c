"""Scenes in which the right action is known, found again by likeness and never from the scene's own source."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from action_selector.likeness import Sentences
from action_selector.nearest import Nearest
from action_selector.orders import meaning
from norm_core.error import TactfulError
from norm_core.record import record

NEAREST = 5


class PrecedentError(TactfulError):
    """A file of precedents, or an index, that cannot be used."""


@record
class Precedent:
    """One scene; source is the video or place it comes from, and an empty action means none offered was right."""

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

    def __init__(self, precedents: Sequence[Precedent], vectors: NDArray[np.float32], weights_sha256: str = "") -> None:
        if len(precedents) != len(vectors):
            raise PrecedentError(
                f"the index holds {len(precedents)} precedents and {len(vectors)} vectors: make it anew"
            )
        self.precedents, self.weights_sha256 = tuple(precedents), weights_sha256
        self._nearest = Nearest(vectors)
        self._sources = np.array([precedent.source for precedent in precedents])

    @classmethod
    def of(cls, precedents: Iterable[Precedent], sentences: Sentences, weights_sha256: str = "") -> "PrecedentIndex":
        """Encodes each scene by itself."""
        kept = tuple(precedents)
        if not kept:
            raise PrecedentError("there are no precedents to index")
        return cls(kept, sentences.encode([meaning(one.scene) for one in kept]), weights_sha256)

    @classmethod
    def load(cls, folder: Path) -> "PrecedentIndex":
        """The index that save wrote."""
        try:
            about = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            vectors = np.load(folder / "vectors.npy", allow_pickle=False)
            precedents = read_precedents(folder / "precedents.jsonl")
            return cls(precedents, vectors, str(about["weights_sha256"]))
        except (OSError, ValueError, KeyError) as error:
            raise PrecedentError(f"{folder}: is no index that `tactful norms index` wrote: {error}") from error

    def save(self, folder: Path) -> None:
        """Writes the precedents and their vectors; a folder that is there is written over."""
        folder.mkdir(parents=True, exist_ok=True)
        write_precedents(folder / "precedents.jsonl", self.precedents)
        np.save(folder / "vectors.npy", self._nearest.vectors, allow_pickle=False)
        about = {"entries": len(self.precedents), "weights_sha256": self.weights_sha256}
        (folder / "index.json").write_text(json.dumps(about) + "\n", encoding="utf-8")

    def query(
        self, scene: str, sentences: Sentences, *, not_of: str = "", count: int = NEAREST
    ) -> list[tuple[Precedent, float]]:
        """The precedents most like the scene with their cosines, the most alike first; none of the source not_of."""
        words = meaning(scene)
        if not words:
            return []
        allowed = self._sources != not_of if not_of else None
        found = self._nearest.to(sentences.encode([words])[0], count, allowed)
        return [(self.precedents[place], cosine) for place, cosine in found]


def read_precedents(path: Path) -> list[Precedent]:
    """Precedents from JSONL: a line each with source, scene, action and, where known, justification."""
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PrecedentError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(Precedent(**_Entry.model_validate_json(line).model_dump()))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "the line"
            raise PrecedentError(f"{path}, line {number}: {where}: {fault['msg']}") from error
    return found


def write_precedents(path: Path, precedents: Iterable[Precedent]) -> None:
    """The inverse of read_precedents."""
    with path.open("w", encoding="utf-8") as file:
        for one in precedents:
            entry = _Entry(source=one.source, scene=one.scene, action=one.action, justification=one.justification)
            file.write(entry.model_dump_json() + "\n")
