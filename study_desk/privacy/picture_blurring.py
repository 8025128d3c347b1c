"""Blur the faces in a bag's images in a second pass, using the faces found nearby in the first pass."""

import hashlib
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from norm_core.records.frame import Frame
from norm_core.records.presence import Face
from norm_core.runtime.picture_decoding import decode_picture
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.faults import CameraFault
from norm_monitor.senses.camera.picture import PictureFormatError, codec_of, decode, picture_of
from study_desk.privacy.blur import FindFaces, Pixels, blur_faces, encode_jpeg
from study_desk.privacy.contact_sheet import CERTAIN, Check, stills_to_check
from study_desk.privacy.topic_treatments import NoFacePolicy

# A face missed in one image was often found shortly before or after.
NEIGHBOURS_NS = NS_PER_S // 2
_QUALITY = 90


class PictureBlurring:
    """The faces of one topic, by image. If `find` is None, whole images are blurred."""

    def __init__(self, find: FindFaces | None, no_face: NoFacePolicy) -> None:
        self._find = find
        self._no_face = no_face
        self._found: list[tuple[int, tuple[Face, ...]]] = []
        self._next = 0
        self._checks: dict[int, Check] | None = None
        self.faces = self.blurred_by_face = self.blurred_whole = self.left = 0

    def collect(self, message: Any, stamp_ns: int) -> None:
        """First pass: find faces. An unreadable image, or None, has no faces."""
        try:
            pixels = pixels_of(message) if self._find and message is not None else None
        except PictureFormatError:
            pixels = None
        self.collect_pixels(pixels, stamp_ns)

    def collect_pixels(self, pixels: Pixels | None, stamp_ns: int) -> None:
        """First pass: find faces in a decoded image; None has none."""
        faces = tuple(self._find(pixels)) if self._find and pixels is not None else ()
        self.faces += sum(face.confidence >= CERTAIN for face in faces)
        self._found.append((stamp_ns, faces))

    def treat(self, message: Any) -> Any:
        """Second pass, in the same order: return the message with blurred faces, or None to leave it out.

        Raises PictureFormatError for an unreadable image.
        """
        try:
            pixels = pixels_of(message)
        except PictureFormatError:
            self.skip()
            raise
        blurred = self.blur(pixels)
        return message if blurred is pixels else None if blurred is None else _with_pixels(message, blurred)

    def blur(self, pixels: Pixels) -> Pixels | None:
        """Second pass: blur the faces of a decoded image. Returns None to leave it out."""
        index, self._next = self._next, self._next + 1
        faces = self._around(index)
        if any(face.confidence >= CERTAIN for face in faces) or (faces and self._no_face is NoFacePolicy.LEAVE):
            self.blurred_by_face += 1
            return blur_faces(pixels, faces)
        if self._find is None or self._no_face is NoFacePolicy.BLUR:
            self.blurred_whole += 1
            return blur_faces(pixels, None)
        if self._no_face is NoFacePolicy.DROP:
            return None
        self.left += 1
        return pixels

    def last_still(self) -> tuple[Check | None, tuple[Face, ...]]:
        """Return why to look at the picture treated last, if at all, and the faces found in it."""
        if self._checks is None:
            self._checks = stills_to_check(
                [stamp_ns for stamp_ns, _ in self._found],
                [sum(face.confidence >= CERTAIN for face in faces) for _, faces in self._found],
            )
        return self._checks.get(self._next - 1), self._found[self._next - 1][1]

    def skip(self) -> None:
        """Second pass: skip an unreadable message."""
        self._next += 1

    def _around(self, index: int) -> tuple[Face, ...]:
        stamp_ns, faces = self._found[index]
        for step in (-1, 1):
            other = index + step
            while 0 <= other < len(self._found) and abs(self._found[other][0] - stamp_ns) <= NEIGHBOURS_NS:
                faces += self._found[other][1]
                other += step
        return faces


def pixels_of(message: Any) -> Pixels:
    """Decode a picture or a kept frame. Raises PictureFormatError."""
    if not isinstance(message, Frame):
        return decode(picture_of(message))
    image = decode_picture(message.tile_jpeg)
    if image is None:
        raise PictureFormatError(CameraFault.DECODE_FAILED, "the kept frame is no JPEG")
    return image


def _with_pixels(message: Any, pixels: Pixels) -> Any:
    """Replace the image of a message. A raw one becomes bgr8; a digest is recomputed."""
    if isinstance(message, Frame):
        tile = encode_jpeg(pixels, _QUALITY)
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
            raise PictureFormatError(CameraFault.DECODE_FAILED, "the picture could not be encoded again")
        return replace(message, format="png", data=np.frombuffer(png.tobytes(), np.uint8))
    return replace(message, format="jpeg", data=np.frombuffer(encode_jpeg(pixels, _QUALITY), np.uint8))
