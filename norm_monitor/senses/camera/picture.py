"""Camera messages as pictures, and their pixels as BGR."""

import re
from struct import Struct, error
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from norm_core.decoding.picture_decoding import JPEG_MAGIC, PNG_MAGIC, check_packed_picture, check_picture_size
from norm_core.decoding.unpacking import UnpackError
from norm_core.records.record import record
from norm_core.records.stamps import join_stamp
from norm_monitor.senses.camera.faults import CameraFault

Pixels = NDArray[np.uint8]

# By encoding: bytes per sample, samples per pixel, and the conversion to BGR, if any.
_PACKED: dict[str, tuple[int, int, int | None]] = {
    "bgr8": (1, 3, None),
    "8UC3": (1, 3, None),
    "rgb8": (1, 3, cv2.COLOR_RGB2BGR),
    "bgra8": (1, 4, cv2.COLOR_BGRA2BGR),
    "8UC4": (1, 4, cv2.COLOR_BGRA2BGR),
    "rgba8": (1, 4, cv2.COLOR_RGBA2BGR),
    "mono8": (1, 1, cv2.COLOR_GRAY2BGR),
    "8UC1": (1, 1, cv2.COLOR_GRAY2BGR),
    "bgr16": (2, 3, None),
    "rgb16": (2, 3, cv2.COLOR_RGB2BGR),
    "mono16": (2, 1, cv2.COLOR_GRAY2BGR),
    "yuv422": (1, 2, cv2.COLOR_YUV2BGR_UYVY),
    "uyvy": (1, 2, cv2.COLOR_YUV2BGR_UYVY),
    "yuv422_yuy2": (1, 2, cv2.COLOR_YUV2BGR_YUY2),
    "yuyv": (1, 2, cv2.COLOR_YUV2BGR_YUY2),
}
for _pattern in ("rggb", "bggr", "gbrg", "grbg"):
    for _bits in (8, 16):
        _PACKED[f"bayer_{_pattern}{_bits}"] = (_bits // 8, 1, getattr(cv2, f"COLOR_Bayer{_pattern.upper()}2BGR"))
_PLANAR = {"nv12": cv2.COLOR_YUV2BGR_NV12, "nv21": cv2.COLOR_YUV2BGR_NV21}
# How pictures begin, by codec.
_MAGIC = {"jpeg": JPEG_MAGIC, "png": PNG_MAGIC}
# Some cameras leave a few bytes between the picture and its end marker; damage leaves many.
_STRAY_BYTES = re.compile(r": \d extraneous bytes")

# The byte orders by the encapsulation headers of CDR. Messages in another form need a ROS library.
_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
_ENCAPSULATION_BYTES = 4
# By encapsulation header, the forms of a stamp, of a count and of two counts, each aligned to four bytes.
_STAMPS = {mark: Struct(f"{order}iI") for mark, order in _ORDERS.items()}
_COUNTS = {mark: Struct(f"{order}I") for mark, order in _ORDERS.items()}
_PAIRS = {mark: Struct(f"{order}II") for mark, order in _ORDERS.items()}
# The padding behind the last word of a message.
_MAX_PADDING_BYTES = 3


class PictureFormatError(ValueError):
    """A picture cannot be decoded. `fault` names its counter."""

    def __init__(self, fault: CameraFault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault


@record
class Picture:
    """A sensor_msgs Image or CompressedImage as received, with undecoded pixels."""

    stamp_ns: int
    frame_id: str
    encoding: str  # or the format of a compressed image
    compressed: bool
    width_px: int = 0
    height_px: int = 0
    step_bytes: int = 0
    big_endian: bool = False
    data: Any  # data of the message, not copied: bytes, an array or a view


def make_picture(message: Any) -> Picture:
    """Return the picture in an Image or CompressedImage of any ROS library, identified by its fields."""
    header = message.header
    stamp_ns = join_stamp(header.stamp.sec, header.stamp.nanosec)
    if hasattr(message, "format"):
        return Picture(
            stamp_ns=stamp_ns, frame_id=header.frame_id, encoding=message.format, compressed=True, data=message.data
        )
    return Picture(
        stamp_ns=stamp_ns,
        frame_id=header.frame_id,
        encoding=message.encoding,
        compressed=False,
        width_px=int(message.width),
        height_px=int(message.height),
        step_bytes=int(message.step),
        big_endian=bool(message.is_bigendian),
        data=message.data,
    )


def name_codec(picture: Picture) -> str:
    """Name the codec as Frame.source_encoding does: jpeg or png for a compressed picture, else its encoding."""
    if not picture.compressed:
        return picture.encoding
    stated = picture.encoding.lower()
    if "compresseddepth" not in stated:
        for name, words in (("jpeg", ("jpeg", "jpg")), ("png", ("png",))):
            if any(word in stated for word in words):
                return name
        if not stated.strip():
            start = bytes(memoryview(picture.data)[:8])
            return next((name for name, magic in _MAGIC.items() if start.startswith(magic)), "")
    return stated


def decode(picture: Picture) -> Pixels:
    """Decode a picture to height x width x 3 BGR bytes. Raises PictureFormatError if it is damaged."""
    try:
        return _decode_compressed(picture) if picture.compressed else _decode_raw(picture)
    except UnpackError as error:
        raise PictureFormatError(CameraFault.DECODE_FAILED, str(error)) from error
    except cv2.error as error:
        raise PictureFormatError(CameraFault.DECODE_FAILED, f"{picture.encoding}: {error.err}") from error


def _decode_compressed(picture: Picture) -> Pixels:
    data = np.frombuffer(picture.data, np.uint8)
    if not data.size:
        raise PictureFormatError(CameraFault.ZERO_SIZE, "the compressed image holds no bytes")
    codec = name_codec(picture)
    if codec not in _MAGIC:
        raise PictureFormatError(CameraFault.UNKNOWN_ENCODING, f"format {picture.encoding!r}")
    found_codec = next((name for name, magic in _MAGIC.items() if data[:8].tobytes().startswith(magic)), None)
    if found_codec is None:
        raise PictureFormatError(
            CameraFault.DECODE_FAILED, f"format {picture.encoding!r}, yet neither JPEG nor PNG inside"
        )
    check_packed_picture(data.tobytes())
    pixels = decode_jpeg(data) if found_codec == "jpeg" else cv2.imdecode(data, cv2.IMREAD_COLOR)
    if pixels is None:
        raise PictureFormatError(CameraFault.DECODE_FAILED, f"the {found_codec} is damaged")
    # "compressed rgb8" means that the encoder took RGB for BGR.
    if "compressed rgb" in picture.encoding.lower():
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    return np.asarray(pixels, np.uint8)


def decode_jpeg(data: Any) -> Pixels:
    """Decode a JPEG to BGR. Raises PictureFormatError for any truncation or damage that JPEG can detect.

    Other decoders return a damaged JPEG as a picture that is grey or garbled behind the damage.
    """
    try:
        return np.asarray(simplejpeg.decode_jpeg(data, "BGR", strict=True), np.uint8)
    except (ValueError, KeyError) as error:
        if not _STRAY_BYTES.search(str(error)):
            raise PictureFormatError(CameraFault.DECODE_FAILED, str(error)) from error
    try:
        return np.asarray(simplejpeg.decode_jpeg(data, "BGR", strict=False), np.uint8)
    except (ValueError, KeyError) as error:
        raise PictureFormatError(CameraFault.DECODE_FAILED, str(error)) from error


def _decode_raw(picture: Picture) -> Pixels:
    width, height = picture.width_px, picture.height_px
    data = np.frombuffer(picture.data, np.uint8)
    if not (width and height and data.size):
        raise PictureFormatError(CameraFault.ZERO_SIZE, f"{width} x {height} px in {data.size} bytes")
    check_picture_size(width, height)
    name = picture.encoding
    if name.lower() in _PLANAR:
        if width % 2 or height % 2:
            raise PictureFormatError(CameraFault.DECODE_FAILED, f"{name} of odd size {width} x {height} px")
        return np.asarray(
            cv2.cvtColor(_slice_rows(picture, data, height * 3 // 2, width), _PLANAR[name.lower()]), np.uint8
        )
    if name not in _PACKED:
        raise PictureFormatError(CameraFault.UNKNOWN_ENCODING, f"encoding {name!r}")
    sample_bytes, samples, conversion = _PACKED[name]
    rows = _slice_rows(picture, data, height, width * sample_bytes * samples)
    if sample_bytes == 2:
        wide = rows.view(">u2" if picture.big_endian else "<u2").reshape(height, width, samples)
        rows = (wide >> 8).astype(np.uint8)
    pixels = rows.reshape(height, width, samples)
    if conversion is None:
        return pixels
    return np.asarray(cv2.cvtColor(pixels, conversion), np.uint8)


def _slice_rows(picture: Picture, data: Pixels, count: int, row_bytes: int) -> Pixels:
    """Return the rows without padding. The last row may have none."""
    step = picture.step_bytes or row_bytes
    if step < row_bytes or data.size < step * (count - 1) + row_bytes:
        raise PictureFormatError(
            CameraFault.DECODE_FAILED,
            f"{data.size} bytes at {step} a row are too few for {picture.width_px} x {picture.height_px} px "
            f"of {picture.encoding}",
        )
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(data, (count, row_bytes), (step, 1)))


def parse_picture(data: bytes, *, compressed: bool) -> Picture | None:
    """Parse a serialized CompressedImage or Image without copying its pixels. None for other data."""
    order = data[:2]
    if order not in _STAMPS:
        return None
    count = _COUNTS[order]
    fields = memoryview(data)[_ENCAPSULATION_BYTES:]
    try:
        stamp_ns = join_stamp(*_STAMPS[order].unpack_from(fields))
        frame_id, offset = _read_counted(fields, _STAMPS[order].size, count)
        height_px = width_px = step_bytes = big_endian = 0
        if not compressed:
            height_px, width_px = _PAIRS[order].unpack_from(fields, _align(offset))
            offset = _align(offset) + _PAIRS[order].size
        encoding, offset = _read_counted(fields, offset, count)
        if not compressed:
            big_endian = fields[offset]
            (step_bytes,) = count.unpack_from(fields, _align(offset + 1))
            offset = _align(offset + 1) + count.size
        pixels, offset = _read_counted(fields, offset, count)
        picture = Picture(
            stamp_ns=stamp_ns,
            frame_id=str(frame_id[:-1], "utf-8"),
            encoding=str(encoding[:-1], "utf-8"),
            compressed=compressed,
            width_px=width_px,
            height_px=height_px,
            step_bytes=step_bytes,
            big_endian=bool(big_endian),
            data=pixels,
        )
    except (error, ValueError, IndexError):  # too short, a length beyond the end, or invalid text
        return None
    return picture if len(fields) - offset <= _MAX_PADDING_BYTES else None


def _read_counted(fields: memoryview, offset: int, count: Struct) -> tuple[memoryview, int]:
    """Return a text or byte sequence with its length in front, and its end. Raises ValueError if it is too short."""
    offset = _align(offset)
    (length,) = count.unpack_from(fields, offset)
    begin = offset + count.size
    if begin + length > len(fields):
        raise ValueError(f"{length} bytes are stated, {len(fields) - begin} are left")
    return fields[begin : begin + length], begin + length


def _align(offset: int) -> int:
    """Return the next multiple of four."""
    return (offset + 3) & ~3
