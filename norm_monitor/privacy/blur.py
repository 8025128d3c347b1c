"""Find and blur faces in pictures."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.decoding.picture_decoding import decode_picture
from norm_core.records.frame import Frame
from norm_core.records.messages import message_type
from norm_core.records.presence import Face
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.faults import IMAGE_TYPES, CameraFault
from norm_monitor.senses.camera.picture import PictureFormatError, decode, make_picture
from norm_monitor.senses.faces.finder import FULL_RANGE, FaceDetector, Numbers

Pixels = NDArray[np.uint8]
# Finds faces in a BGR image.
FindFaces = Callable[[Pixels], Sequence[Face]]
# The message types of pictures.
PICTURES = (*IMAGE_TYPES, message_type(Frame))

# Face boxes grow by this share on each side, because detectors cut off hair and chin.
MARGIN_RATIO = 0.35

# The threshold is low, because a missed face costs more than a blurred wall.
MIN_CONFIDENCE = 0.2
# The overlap of neighbouring tiles, as a share of their side. A larger face fits into a tile of twice the side.
_TILE_OVERLAP_RATIO = 1 / 3
# Boxes of similar width that overlap by this share are one face. The margin of the blur covers the difference.
_SAME_FACE_RATIO = 0.65
# Less certain boxes are blurred too, but they do not show that a picture has a face.
CERTAIN_CONFIDENCE = 0.5
# The faces of pictures within this time are blurred too, because a missed face was often found shortly before or after.
MAX_NEIGHBOUR_NS = NS_PER_S // 2
# The blocks across a blurred face, and across a picture that is blurred whole.
_FACE_BLOCKS = 6
_PICTURE_BLOCKS = 16


class NoFacePolicy(StrEnum):
    """What a video shows in place of a picture in which no face is certain."""

    BLUR = "blur"
    LEAVE = "leave"
    DROP = "drop"


def blur_faces(image: Pixels, faces: Sequence[Face] | None) -> Pixels:
    """Make the faces unrecognizable. Without a face detector, blur the whole image."""
    height, width = image.shape[:2]
    out = image.copy()
    boxes = [(0, 0, width, height)] if faces is None else [_enlarge_box(face, width, height) for face in faces]
    for left, top, right, bottom in boxes:
        if right > left and bottom > top:
            part = out[top:bottom, left:right]
            # A few large blocks, then a blur: a blur alone can partly be undone.
            columns = _FACE_BLOCKS if faces is not None else _PICTURE_BLOCKS
            rows = max(2, columns * part.shape[0] // part.shape[1])
            blocks = cv2.resize(part, (columns, rows), interpolation=cv2.INTER_AREA)
            out[top:bottom, left:right] = cv2.resize(blocks, part.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return out


def _enlarge_box(face: Face, width: int, height: int) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of a face's box with its margin, in pixels."""
    side_margin = face.width_ratio * MARGIN_RATIO
    top_margin = face.height_ratio * MARGIN_RATIO
    return (
        max(0, round((face.left_ratio - side_margin) * width)),
        max(0, round((face.top_ratio - top_margin) * height)),
        min(width, round((face.left_ratio + face.width_ratio + side_margin) * width)),
        min(height, round((face.top_ratio + face.height_ratio + top_margin) * height)),
    )


class TiledFaceDetector:
    """A detector of faces from 20 px, in the whole image and in overlapping tiles of full resolution."""

    def __init__(self) -> None:
        self._detector = FaceDetector(FULL_RANGE, MIN_CONFIDENCE)
        self._pool = ThreadPoolExecutor()

    def find(self, image: Pixels) -> tuple[Face, ...]:
        """Find the faces in a BGR image, the largest first."""
        height, width = image.shape[:2]
        tiles = list(_place_tiles(width, height, self._detector.input_px))
        parts = [image[top : top + side, left : left + side] for left, top, side in tiles]
        boxes = [
            (face.score, face.box + np.array((left, top, 0, 0)))
            for (left, top, _), faces in zip(tiles, self._pool.map(self._detector.detect, parts), strict=True)
            for face in faces
        ]
        distinct: list[tuple[float, Numbers]] = []
        for score, box in sorted(boxes, key=lambda face: -face[1][2] * face[1][3]):
            if not any(
                2 * box[2] > larger[2] and _measure_share_within(box, larger) >= _SAME_FACE_RATIO
                for _, larger in distinct
            ):
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


def _place_tiles(width: int, height: int, smallest_px: int) -> Iterator[tuple[int, int, int]]:
    """Yield left, top and side of each tile: the whole image first, then smaller tiles."""
    longest = max(width, height)
    yield 0, 0, longest
    doublings = math.ceil(math.log2(longest / smallest_px)) if longest > smallest_px else 0
    for doubling in reversed(range(doublings)):
        side = smallest_px << doubling
        for top in _place_starts(height, side):
            for left in _place_starts(width, side):
                yield left, top, side


def _place_starts(length: int, side: int) -> list[int]:
    """Return tile starts that cover a length evenly."""
    steps = max(0, math.ceil((length - side) / (side * (1 - _TILE_OVERLAP_RATIO))))
    return [round(index * (length - side) / steps) for index in range(steps + 1)] if steps else [0]


def _measure_share_within(box: Numbers, other: Numbers) -> float:
    """Return the share of a box that lies within another."""
    sides = np.minimum(box[:2] + box[2:], other[:2] + other[2:]) - np.maximum(box[:2], other[:2])
    return float(np.prod(np.maximum(sides, 0)) / np.prod(box[2:]))


class PictureBlurring:
    """The blurring of one topic's images in two passes. Without `find`, whole images are blurred."""

    def __init__(self, find: FindFaces | None, no_face: NoFacePolicy) -> None:
        self._find = find
        self._no_face = no_face
        self._faces: list[tuple[int, tuple[Face, ...]]] = []
        self._next_index = 0

    def collect_pixels(self, pixels: Pixels | None, stamp_ns: int) -> None:
        """First pass: find faces in a decoded image. None has no faces."""
        faces = tuple(self._find(pixels)) if self._find and pixels is not None else ()
        self._faces.append((stamp_ns, faces))

    def blur(self, pixels: Pixels) -> Pixels | None:
        """Second pass: blur the faces of a decoded image. None means to leave it out."""
        index = self._next_index
        self._next_index += 1
        faces = self._collect_near_faces(index)
        if any(face.confidence >= CERTAIN_CONFIDENCE for face in faces) or (
            faces and self._no_face is NoFacePolicy.LEAVE
        ):
            return blur_faces(pixels, faces)
        if self._find is None or self._no_face is NoFacePolicy.BLUR:
            return blur_faces(pixels, None)
        return None if self._no_face is NoFacePolicy.DROP else pixels

    def skip(self) -> None:
        """Second pass: skip an unreadable message."""
        self._next_index += 1

    def _collect_near_faces(self, index: int) -> tuple[Face, ...]:
        """Return the faces of an image and of those shortly before and after it."""
        stamp_ns, faces = self._faces[index]
        for step in (-1, 1):
            other = index + step
            while 0 <= other < len(self._faces) and abs(self._faces[other][0] - stamp_ns) <= MAX_NEIGHBOUR_NS:
                faces += self._faces[other][1]
                other += step
        return faces


def decode_pixels(message: Any) -> Pixels:
    """Decode a picture or a kept frame. Raises PictureFormatError."""
    if not isinstance(message, Frame):
        return decode(make_picture(message))
    image = decode_picture(message.tile_jpeg)
    if image is None:
        raise PictureFormatError(CameraFault.DECODE_FAILED, "the tile of the frame is not a JPEG")
    return image
