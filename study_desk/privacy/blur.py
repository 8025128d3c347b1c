"""Make faces in images unrecognizable. The originals are never stored."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.records.presence import Face
from norm_core.runtime.errors import TactfulError

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
