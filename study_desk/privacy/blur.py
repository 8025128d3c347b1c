"""Find faces in pictures of any size, and blur them."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.records.presence import Face
from norm_core.runtime.errors import TactfulError
from norm_monitor.senses.faces.finder import FULL_RANGE, FaceDetector, Numbers

Pixels = NDArray[np.uint8]
FindFaces = Callable[[Pixels], Sequence[Face]]  # finds faces in a BGR image

# Face boxes grow by this share on each side, because detectors cut off hair and chin.
MARGIN = 0.35


class BlurError(TactfulError, ValueError):
    """An image cannot be made."""


def blur_faces(image: Pixels, faces: Sequence[Face] | None) -> Pixels:
    """Make the faces unrecognizable. Without a face detector, blur the whole image."""
    height, width = image.shape[:2]
    out = image.copy()
    boxes = [(0, 0, width, height)] if faces is None else [_box(face, width, height) for face in faces]
    for left, top, right, bottom in boxes:
        if right > left and bottom > top:
            part = out[top:bottom, left:right]
            # Few large blocks, then a blur. A blur alone can partly be undone.
            few = 6 if faces is not None else 16
            blocks = cv2.resize(part, (few, max(2, few * part.shape[0] // part.shape[1])), interpolation=cv2.INTER_AREA)
            out[top:bottom, left:right] = cv2.resize(blocks, part.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return out


def encode_jpeg(image: Pixels, quality: int = 70) -> bytes:
    """Encode a BGR image as JPEG."""
    encoded, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not encoded:
        raise BlurError("a picture could not be encoded")
    return data.tobytes()


def _box(face: Face, width: int, height: int) -> tuple[int, int, int, int]:
    wide, tall = face.width_ratio * MARGIN, face.height_ratio * MARGIN
    return (
        max(0, round((face.left_ratio - wide) * width)),
        max(0, round((face.top_ratio - tall) * height)),
        min(width, round((face.left_ratio + face.width_ratio + wide) * width)),
        min(height, round((face.top_ratio + face.height_ratio + tall) * height)),
    )


# A low threshold: a missed face costs more than a blurred wall.
MIN_CONFIDENCE = 0.2
# The overlap of neighbouring tiles, as a share of their side. A larger face fits a tile of twice the side.
_TILE_OVERLAP = 1 / 3
# Boxes of similar width with this share of overlap are one face. The blur's margin covers the difference.
_SAME_FACE = 0.65


class TiledFaceDetector:
    """Find faces from 20 px, in the whole image and in overlapping full-resolution tiles."""

    def __init__(self) -> None:
        self._detector = FaceDetector(FULL_RANGE, MIN_CONFIDENCE)
        self._pool = ThreadPoolExecutor()

    def find(self, image: Pixels) -> tuple[Face, ...]:
        """Find the faces in a BGR image, the largest first."""
        height, width = image.shape[:2]
        tiles = list(_tiles(width, height, self._detector.input_px))
        parts = [image[top : top + side, left : left + side] for left, top, side in tiles]
        boxes = [
            (face.score, face.box + np.array((left, top, 0, 0)))
            for (left, top, _), faces in zip(tiles, self._pool.map(self._detector.detect, parts), strict=True)
            for face in faces
        ]
        distinct: list[tuple[float, Numbers]] = []
        for score, box in sorted(boxes, key=lambda face: -face[1][2] * face[1][3]):
            if not any(2 * box[2] > larger[2] and _share_within(box, larger) >= _SAME_FACE for _, larger in distinct):
                distinct.append((score, box))
        return tuple(
            Face(
                left_ratio=float(box[0]) / width,
                top_ratio=float(box[1]) / height,
                width_ratio=float(box[2]) / width,
                height_ratio=float(box[3]) / height,
                confidence=score,
            )
            for score, box in distinct
        )


def _tiles(width: int, height: int, smallest_px: int) -> Iterator[tuple[int, int, int]]:
    """Yield left, top and side of each tile: the whole image first, then smaller tiles."""
    longest = max(width, height)
    yield 0, 0, longest
    doublings = math.ceil(math.log2(longest / smallest_px)) if longest > smallest_px else 0
    for doubling in reversed(range(doublings)):
        side = smallest_px << doubling
        for top in _starts(height, side):
            for left in _starts(width, side):
                yield left, top, side


def _starts(length: int, side: int) -> list[int]:
    """Return tile starts that cover a length evenly."""
    steps = max(0, math.ceil((length - side) / (side * (1 - _TILE_OVERLAP))))
    return [round(index * (length - side) / steps) for index in range(steps + 1)] if steps else [0]


def _share_within(box: Numbers, other: Numbers) -> float:
    """Compute the share of a box's area inside another box."""
    sides = np.minimum(box[:2] + box[2:], other[:2] + other[2:]) - np.maximum(box[:2], other[:2])
    return float(np.prod(np.maximum(sides, 0)) / np.prod(box[2:]))
