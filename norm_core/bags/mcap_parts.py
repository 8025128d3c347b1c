"""The records of an MCAP file as bytes: headers, chunks, channels. No length in the file is trusted."""

import struct
import zlib
from io import BytesIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Schema

from norm_core.bags.topic import BagTopic, read_qos
from norm_core.records.record import record
from norm_core.runtime.unpacking import MAX_UNPACKED_BYTES, UnpackError, unpack_lz4, unpack_zstd

MAGIC = b"\x89MCAP0\r\n"
HEADER_BYTES = 9  # opcode and length
KNOWN = range(min(Opcode), max(Opcode) + 1)
# Channel, sequence, log time and publish time precede a message's data.
MESSAGE_HEAD = struct.Struct("<HIQQ")
_CHUNK_HEAD = struct.Struct("<QQQII")
_COMPRESSIONS = (b"", b"lz4", b"zstd")
CHUNK_HEAD_BYTES = _CHUNK_HEAD.size + 4 + 8  # with the longest compression name


@record
class ChunkHead:
    """The header of a chunk; `data_offset` counts from the record's first byte."""

    unpacked_bytes: int
    crc: int
    compression: str
    data_offset: int
    data_bytes: int


def chunk_head(head: bytes, length: int) -> ChunkHead | None:
    """Return the header of a chunk with this stated length, or None if its parts are inconsistent."""
    if len(head) < _CHUNK_HEAD.size + 8:
        return None
    _, _, unpacked_bytes, crc, name_bytes = _CHUNK_HEAD.unpack_from(head)
    name = head[_CHUNK_HEAD.size : _CHUNK_HEAD.size + name_bytes] if name_bytes <= 4 else b"?"
    at = _CHUNK_HEAD.size + name_bytes
    if name not in _COMPRESSIONS or len(head) < at + 8:
        return None
    (data_bytes,) = struct.unpack_from("<Q", head, at)
    if at + 8 + data_bytes != length or max(unpacked_bytes, length) > MAX_UNPACKED_BYTES:
        return None
    if not name and data_bytes != unpacked_bytes:
        return None
    return ChunkHead(
        unpacked_bytes=unpacked_bytes,
        crc=crc,
        compression=name.decode(),
        data_offset=HEADER_BYTES + at + 8,
        data_bytes=data_bytes,
    )


def unpack(head: ChunkHead, data: bytes) -> tuple[bytes, str]:
    """Return the records of a chunk as far as they can be unpacked, and the fault, if any."""
    try:
        if head.compression == "zstd":
            unpacked = unpack_zstd(data, head.unpacked_bytes)
        elif head.compression == "lz4":
            unpacked = unpack_lz4(data, head.unpacked_bytes)
        else:
            unpacked = data
    except UnpackError as error:
        return b"", f"cannot be decompressed: {error}"
    if len(data) < head.data_bytes:
        return unpacked, "is cut short"
    if len(unpacked) != head.unpacked_bytes:
        return b"", f"holds {len(unpacked)} bytes in place of {head.unpacked_bytes}"
    if head.crc and zlib.crc32(unpacked) != head.crc:
        return b"", "has a checksum that does not fit"
    return unpacked, ""


class Channels:
    """The schemas and channels of a file so far."""

    def __init__(self) -> None:
        self._schemas: dict[int, Schema] = {}
        self._topics: dict[int, BagTopic] = {}

    def learn(self, opcode: int, body: bytes) -> bool:
        """Read a schema or channel record; return whether it was readable. The first definition stays."""
        try:
            stream = ReadDataStream(BytesIO(body))
            read = (Schema if opcode == Opcode.SCHEMA else Channel).read(stream)
            if stream.count != len(body):
                return False
            if isinstance(read, Schema):
                self._schemas.setdefault(read.id, read)
            else:
                self._topics.setdefault(read.id, self._topic(read))
        except (McapError, struct.error, UnicodeDecodeError, KeyError, MemoryError):
            return False
        return True

    def get(self, channel_id: int) -> BagTopic | None:
        """Return the topic of a channel, or None if no record defined it yet."""
        return self._topics.get(channel_id)

    def _topic(self, channel: Channel) -> BagTopic:
        schema = self._schemas.get(channel.schema_id)
        if channel.schema_id and schema is None:
            raise KeyError(channel.schema_id)
        return BagTopic(
            topic=channel.topic,
            type_name=schema.name if schema else "",
            definition=schema.data.decode("utf-8", "replace") if schema else "",
            is_idl=schema is not None and schema.encoding in ("ros2idl", "omgidl"),
            serialization=channel.message_encoding,
            qos=tuple(read_qos(channel.metadata.get("offered_qos_profiles", ""))),
        )
