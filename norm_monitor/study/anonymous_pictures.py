"""Pictures of a bag with their faces blurred, in a second pass, by what was found around each of them in a first."""

import hashlib
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from norm_core.frame import Frame
from norm_core.presence import Face
from norm_core.time import NS_PER_S
from norm_monitor.senses.picture import PictureError, codec_of, decode, picture_of
from norm_monitor.senses.sight_faults import SightFault
from norm_monitor.study.anonymous import WithoutFace
from norm_monitor.study.blur import FindFaces, Pixels, blurred, faces_in, jpeg

# A face that is missed in one picture was often found in the one before or after it.
NEIGHBOURS_NS = NS_PER_S // 2
_LOOKED_AT_PX = 960
# Besides the whole, overlapping quarters are looked at: the detector misses what is small.
_PARTS = [(x, y, 0.6) for x in (0.0, 0.4) for y in (0.0, 0.4)]
_QUALITY = 90


class Pictures:
    """One topic's faces by the order of its pictures; find None blurs all of every picture."""

    def __init__(self, find: FindFaces | None, without_face: WithoutFace) -> None:
        self._find = find
        self._without_face = without_face
        self._found: list[tuple[int, tuple[Face, ...]]] = []
        self._next = 0
        self.faces = self.without_face = 0

    def look(self, message: Any, stamp_ns: int) -> None:
        """First pass: where the faces are; a picture that cannot be read, or None for one, has none."""
        faces: tuple[Face, ...] = ()
        if self._find and message is not None:
            try:
                faces = _faces(_pixels(message), self._find)
            except PictureError:
                faces = ()
        self.faces += len(faces)
        self._found.append((stamp_ns, faces))

    def changed(self, message: Any) -> Any:
        """Second pass, in the order of the first: the message with its faces blurred, None where it is left out.

        Raises PictureError for what cannot be read.
        """
        index, self._next = self._next, self._next + 1
        pixels = _pixels(message)
        faces = self._around(index) if self._find else None
        if faces is not None and not faces:
            self.without_face += 1
            if self._without_face is WithoutFace.DROP:
                return None
            faces = None if self._without_face is WithoutFace.BLUR else faces
        return _with_pixels(message, blurred(pixels, faces))

    def skip(self) -> None:
        """Second pass: passes over a message that cannot be read."""
        self._next += 1

    def _around(self, index: int) -> tuple[Face, ...]:
        stamp_ns, faces = self._found[index]
        for step in (-1, 1):
            other = index + step
            while 0 <= other < len(self._found) and abs(self._found[other][0] - stamp_ns) <= NEIGHBOURS_NS:
                faces += self._found[other][1]
                other += step
        return faces


def _faces(pixels: Pixels, find: FindFaces) -> tuple[Face, ...]:
    scale = min(1.0, _LOOKED_AT_PX / max(pixels.shape[:2]))
    if scale < 1:
        pixels = np.asarray(cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)
    height, width = pixels.shape[:2]
    found = list(faces_in(pixels, find) or ())
    for x, y, size in _PARTS:
        left, top = round(x * width), round(y * height)
        part = pixels[top : top + max(1, round(size * height)), left : left + max(1, round(size * width))]
        tall, wide = part.shape[0] / height, part.shape[1] / width
        for face in faces_in(np.ascontiguousarray(part), find) or ():
            whole = replace(
                face,
                left_ratio=left / width + face.left_ratio * wide,
                top_ratio=top / height + face.top_ratio * tall,
                width_ratio=face.width_ratio * wide,
                height_ratio=face.height_ratio * tall,
            )
            if not any(_holds(other, whole) for other in found):
                found.append(whole)
    return tuple(found)


def _holds(one: Face, other: Face) -> bool:
    """Whether the other is the same face: its middle lies in the one's box, and it is hardly wider."""
    x = other.left_ratio + other.width_ratio / 2 - one.left_ratio
    y = other.top_ratio + other.height_ratio / 2 - one.top_ratio
    inside = 0 <= x <= one.width_ratio and 0 <= y <= one.height_ratio
    return inside and other.width_ratio <= 1.2 * one.width_ratio


def _pixels(message: Any) -> Pixels:
    if not isinstance(message, Frame):
        return decode(picture_of(message))
    image = cv2.imdecode(np.frombuffer(message.tile_jpeg, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise PictureError(SightFault.DECODE_FAILED, "the kept frame is no JPEG")
    return np.asarray(image, np.uint8)


def _with_pixels(message: Any, pixels: Pixels) -> Any:
    """The message with another picture; a raw one becomes bgr8, and a digest is that of what it now holds."""
    if isinstance(message, Frame):
        tile = jpeg(pixels, _QUALITY)
        return replace(message, tile_jpeg=tile, payload_sha256=hashlib.sha256(tile).hexdigest())
    picture = picture_of(message)
    if not picture.compressed:
        return replace(
            message,
            encoding="bgr8",
            is_bigendian=0,
            step=pixels.shape[1] * 3,
            data=np.ascontiguousarray(pixels).ravel(),
        )
    if codec_of(picture) == "png":
        encoded, png = cv2.imencode(".png", pixels)
        if not encoded:
            raise PictureError(SightFault.DECODE_FAILED, "the picture could not be encoded again")
        return replace(message, format="png", data=np.frombuffer(png.tobytes(), np.uint8))
    return replace(message, format="jpeg", data=np.frombuffer(jpeg(pixels, _QUALITY), np.uint8))
