"""Tile several frames into one, left to right and top to bottom."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from norm_core.records.frame import Frame
from norm_core.runtime.picture_decoding import decode_picture

ACROSS = 5
_QUALITY = 90


def tile_pictures(frames: Sequence[Frame]) -> Frame:
    """Tile frames five wide, with the newest stamp. Cells have the size of the first frame's tile."""
    newest = max(frames, key=lambda frame: frame.stamp_ns)
    width, height = frames[0].tile_width_px, frames[0].tile_height_px
    rows = -(-len(frames) // ACROSS)
    whole = np.zeros((rows * height, min(ACROSS, len(frames)) * width, 3), np.uint8)
    for place, frame in enumerate(frames):
        picture = decode_picture(frame.tile_jpeg)
        assert picture is not None, "a kept frame's tile was encoded by the camera itself"
        row, column = divmod(place, ACROSS)
        cell = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        whole[row * height : (row + 1) * height, column * width : (column + 1) * width] = cell
    encoded, jpeg = cv2.imencode(".jpg", whole, (cv2.IMWRITE_JPEG_QUALITY, _QUALITY))
    if not encoded:
        raise RuntimeError("the image library could not encode a JPEG")
    payloads = "".join(frame.payload_sha256 for frame in frames)
    return replace(
        newest,
        payload_sha256=hashlib.sha256(payloads.encode()).hexdigest(),
        tile_width_px=whole.shape[1],
        tile_height_px=whole.shape[0],
        tile_jpeg=jpeg.tobytes(),
    )
