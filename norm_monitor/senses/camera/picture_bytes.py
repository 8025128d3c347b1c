"""Read a camera message's picture directly from its bytes: most pictures are skipped, and their pixels never copied."""

from struct import Struct, error

from norm_core.runtime.time import join_stamp
from norm_monitor.senses.camera.picture import Picture

# The encapsulation headers of CDR, by byte order; messages in another form need a ROS library.
_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
_HEAD_BYTES = 4
# A header's stamp, and one or two counts, by byte order; each is aligned to four bytes.
_STAMPS, _COUNTS, _PAIRS = (
    {mark: Struct(order + form) for mark, order in _ORDERS.items()} for form in ("iI", "I", "II")
)
# The padding of a message's last word.
_MOST_PADDING = 3


def picture_in(data: bytes, *, compressed: bool) -> Picture | None:
    """Return the picture in a serialized CompressedImage or Image, as a view of `data`; None for other data."""
    order = data[:2]
    if order not in _ORDERS:
        return None
    count, fields = _COUNTS[order], memoryview(data)[_HEAD_BYTES:]
    try:
        stamp_ns = join_stamp(*_STAMPS[order].unpack_from(fields))
        frame_id, at = _counted(fields, _STAMPS[order].size, count)
        height_px = width_px = step_bytes = big_endian = 0
        if not compressed:
            height_px, width_px = _PAIRS[order].unpack_from(fields, _aligned(at))
            at = _aligned(at) + _PAIRS[order].size
        encoding, at = _counted(fields, at, count)
        if not compressed:
            big_endian = fields[at]
            (step_bytes,) = count.unpack_from(fields, _aligned(at + 1))
            at = _aligned(at + 1) + count.size
        pixels, at = _counted(fields, at, count)
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
    return picture if len(fields) - at <= _MOST_PADDING else None


def _counted(fields: memoryview, at: int, count: Struct) -> tuple[memoryview, int]:
    """Return a length-prefixed text or byte sequence, and its end."""
    at = _aligned(at)
    (length,) = count.unpack_from(fields, at)
    begin = at + count.size
    if begin + length > len(fields):
        raise ValueError(f"{length} bytes are stated, {len(fields) - begin} are left")
    return fields[begin : begin + length], begin + length


def _aligned(at: int) -> int:
    return (at + 3) & ~3
