"""A camera message's picture straight from its bytes: most pictures are not kept, and their pixels are never copied."""

from struct import Struct, error

from norm_core.time import join_stamp
from norm_monitor.senses.picture import Picture

# How CDR says in which order its bytes stand; messages in any other form are left to a ROS library.
_ORDERS = {b"\x00\x00": ">", b"\x00\x01": "<"}
_HEAD_BYTES = 4
# What fills the last word of a message.
_MOST_PADDING = 3


def picture_in(data: bytes, *, compressed: bool) -> Picture | None:
    """The picture in a serialised CompressedImage or Image, a view of data; None where data is no such message."""
    order = _ORDERS.get(data[:2])
    if order is None:
        return None
    fields = _Fields(data, order)
    try:
        stamp_ns = join_stamp(fields.number("i"), fields.number("I"))
        frame_id = fields.text()
        if compressed:
            picture = Picture(
                stamp_ns=stamp_ns, frame_id=frame_id, encoding=fields.text(), compressed=True, data=fields.bytes()
            )
        else:
            height_px, width_px, encoding = fields.number("I"), fields.number("I"), fields.text()
            big_endian, step_bytes = fields.number("B"), fields.number("I")
            picture = Picture(
                stamp_ns=stamp_ns,
                frame_id=frame_id,
                encoding=encoding,
                compressed=False,
                width_px=width_px,
                height_px=height_px,
                step_bytes=step_bytes,
                big_endian=bool(big_endian),
                data=fields.bytes(),
            )
    except (error, ValueError):  # too short, a length that runs over the end, a text that is none
        return None
    return picture if fields.left_bytes <= _MOST_PADDING else None


class _Fields:
    """Reads a message's fields one after the other; a number stands at a multiple of its size."""

    def __init__(self, data: bytes, order: str) -> None:
        self._data, self._at = memoryview(data)[_HEAD_BYTES:], 0
        self._formats = _FORMATS[order]

    @property
    def left_bytes(self) -> int:
        return len(self._data) - self._at

    def number(self, kind: str) -> int:
        form = self._formats[kind]
        at = -(-self._at // form.size) * form.size
        (number,) = form.unpack_from(self._data, at)
        self._at = at + form.size
        return int(number)

    def text(self) -> str:
        return str(self.bytes()[:-1], "utf-8")

    def bytes(self) -> memoryview:
        count = self.number("I")
        if count > self.left_bytes:
            raise ValueError(f"{count} bytes are stated, {self.left_bytes} are left")
        self._at += count
        return self._data[self._at - count : self._at]


_FORMATS = {order: {kind: Struct(order + kind) for kind in "iIB"} for order in ("<", ">")}
