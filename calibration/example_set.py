"""A folder of pictures and sentences on which a quantization measures activations, drawn from bags by diversity."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.models.store import hashed_file
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.records.record import record
from norm_core.runtime.atomic_file import write_atomic
from norm_core.runtime.errors import TactfulError

MANIFEST = "examples.json"
_FORMAT = 1
_SIDE_PX = 8
_OWNER_ONLY = 0o600

Matrix = NDArray[np.float32]
Pixels = NDArray[np.uint8]


class ExampleError(TactfulError, ValueError):
    """A folder of examples cannot be used; the message says why."""


@record
class SourceBag:
    """A bag by its name and digest."""

    bag: str
    digest: str


@record
class PictureExample:
    """A picture by its file in the folder, and where it is from."""

    file: str
    sha256: str
    bag: str
    stamp_ns: int


@record
class SentenceExample:
    """What somebody said."""

    text: str
    bag: str
    stamp_ns: int


@record
class ExampleSet:
    """The manifest of a folder of examples."""

    made_on: str
    seed: int
    sources: tuple[SourceBag, ...]
    pictures: tuple[PictureExample, ...]
    sentences: tuple[SentenceExample, ...]
    left_out: dict[str, int]  # by reason
    format: int = _FORMAT

    def write(self, folder: Path) -> None:
        """Write the manifest, readable by its owner alone."""
        write_atomic(folder / MANIFEST, f"{to_json(self)}\n", mode=_OWNER_ONLY)


def is_example_set(folder: Path) -> bool:
    """Whether the folder holds examples."""
    return (folder / MANIFEST).is_file()


def read_examples(folder: Path) -> ExampleSet:
    """Read the manifest; raise ExampleError if it or a picture is not as written."""
    try:
        found = from_json(ExampleSet, (folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError) as error:
        raise ExampleError(f"{folder / MANIFEST}: cannot be read: {error}; draw the examples again") from error
    if found.format != _FORMAT:
        raise ExampleError(f"{folder / MANIFEST}: is of format {found.format}, not {_FORMAT}; draw the examples again")
    for picture in found.pictures:
        path = folder / picture.file
        if not path.is_file() or hashed_file(folder, picture.file).sha256 != picture.sha256:
            raise ExampleError(f"{path}: is missing or was changed; draw the examples again")
    return found


def draw_diverse(
    descriptors: Matrix, count: int, seed: int, accept: Callable[[int], bool] = lambda place: True
) -> list[int]:
    """Return the places of at most `count` accepted rows, each the farthest from those before it.

    The seed decides the first row. A row that is not accepted is left out for good; equal rows are drawn once.
    """
    left = np.full(len(descriptors), np.inf)
    chosen: list[int] = []
    place = int(np.random.default_rng(seed).integers(len(descriptors))) if len(descriptors) else 0
    while len(chosen) < count and len(descriptors) and left[place] > 0:
        if accept(place):
            chosen.append(place)
            left = np.minimum(left, np.linalg.norm(descriptors - descriptors[place], axis=1))
        left[place] = 0
        place = int(left.argmax())
    return chosen


def picture_descriptor(bgr: Pixels) -> Matrix:
    """Return a small thumbnail of colours and of edges as one row."""
    small = cv2.resize(bgr, (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA)
    grey = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
    edges = cv2.resize(cv2.Canny(grey, 100, 200), (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA)
    row: Matrix = np.concatenate([cv2.cvtColor(small, cv2.COLOR_BGR2LAB).ravel(), edges.ravel()]).astype(np.float32)
    return row / np.float32(255)
