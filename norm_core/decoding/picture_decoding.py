"""Decode pictures from outside, whose size is checked before memory is used, and encode pictures."""

import struct
from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from norm_core.decoding.unpacking import UnpackError

# A picture of 8K has 33 million pixels, and JPEG holds no side of more than 65,500.
MAX_PIXELS = 50_000_000
MAX_SIDE_PX = 32_000
# A progressive JPEG takes the time of a whole picture for each of its scans, and encoders write about ten.
MAX_JPEG_SCANS = 100
JPEG_MAGIC = b"\xff\xd8\xff"
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
# The marker of a scan. Within the data of a scan, 0xff is followed by 0.
_SCAN = b"\xff\xda"


def check_picture_size(width_px: int, height_px: int) -> None:
    """Check that a picture is small enough to work on. Raises UnpackError."""
    if width_px * height_px > MAX_PIXELS or max(width_px, height_px) > MAX_SIDE_PX:
        raise UnpackError(
            f"a picture of {width_px} x {height_px} px is too large: at most {MAX_PIXELS // 10**6} million pixels "
            f"and {MAX_SIDE_PX} px a side are read; lower the camera's resolution"
        )


def check_packed_picture(data: bytes) -> None:
    """Check that the header of a JPEG or PNG states a size that can be decoded. Raises UnpackError."""
    if data.startswith(JPEG_MAGIC):
        try:
            height_px, width_px, *_ = simplejpeg.decode_jpeg_header(data, strict=False)
        except (ValueError, KeyError) as error:  # a KeyError for a header without a picture
            raise UnpackError(f"the JPEG is damaged: {error}") from error
        if data.count(_SCAN) > MAX_JPEG_SCANS:
            raise UnpackError(f"a JPEG of more than {MAX_JPEG_SCANS} scans is not decoded; use a plain JPEG")
    elif data.startswith(PNG_MAGIC) and data[12:16] == b"IHDR" and len(data) >= 24:
        width_px, height_px = struct.unpack_from(">II", data, 16)
    else:
        raise UnpackError("it is neither JPEG nor PNG")
    check_picture_size(width_px, height_px)


def decode_picture(data: bytes) -> NDArray[np.uint8] | None:
    """Decode a JPEG or PNG to BGR; None if it is damaged, too large or something else."""
    import cv2  # noqa: PLC0415  # only when a picture comes, as most nodes get none

    try:
        check_packed_picture(data)
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except (UnpackError, cv2.error):
        return None
    return None if pixels is None else np.asarray(pixels, np.uint8)


def encode_jpeg(pixels: NDArray[Any], quality: int) -> bytes:
    """Encode a BGR picture; `quality` is of 100."""
    import cv2  # noqa: PLC0415  # as above

    is_encoded, jpeg = cv2.imencode(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, quality))
    if not is_encoded:
        raise RuntimeError("the image library could not encode a JPEG")
    return bytes(jpeg.tobytes())
