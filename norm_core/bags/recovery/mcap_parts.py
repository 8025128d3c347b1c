"""The records of an MCAP file as bytes: headers, chunks, channels, summary. No length in the file is trusted."""

import struct
import zlib
from collections import Counter
from io import BytesIO
from typing import BinaryIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, ChunkIndex, Schema, Statistics
from mcap.stream_reader import StreamReader

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
_FOOTER_BYTES = 20
# What the library's parsers raise for damaged records.
UNREADABLE = (McapError, struct.error, UnicodeDecodeError, ValueError, KeyError, MemoryError)


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
            self.add(read)
        except UNREADABLE:
            return False
        return True

    def add(self, read: Schema | Channel) -> None:
        """Add a schema or channel; raise KeyError for a channel whose schema is not stated yet."""
        if isinstance(read, Schema):
            self._schemas.setdefault(read.id, read)
        else:
            self._topics.setdefault(read.id, self._topic(read))

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


@record
class Summary:
    """Chunk offsets in order, and messages by topic; None if the file has no counts."""

    chunk_offsets: tuple[int, ...]
    messages: dict[str, int] | None


def read_summary(file: BinaryIO, size: int, channels: Channels) -> Summary | None:
    """Return the summary at the end of a complete file and add its topics to `channels`; None if it is damaged."""
    section = _summary_section(file, size)
    if section is None:
        return None
    offsets: list[int] = []
    counts: dict[int, int] | None = None
    try:
        for read in StreamReader(BytesIO(section), skip_magic=True, emit_chunks=True).records:
            match read:
                case Schema() | Channel():
                    channels.add(read)
                case ChunkIndex():
                    offsets.append(read.chunk_start_offset)
                case Statistics():
                    counts = read.channel_message_counts
    except UNREADABLE:
        return None
    if any(offset >= size for offset in offsets):
        return None
    messages: Counter[str] = Counter()
    for channel_id, count in (counts or {}).items():
        if topic := channels.get(channel_id):
            messages[topic.topic] += count
    return Summary(chunk_offsets=tuple(sorted(offsets)), messages=None if counts is None else dict(messages))


def _summary_section(file: BinaryIO, size: int) -> bytes | None:
    """Return the bytes from the summary to the end of the file; None unless a footer and its checksum fit."""
    at = size - HEADER_BYTES - _FOOTER_BYTES - len(MAGIC)
    if at < 0:
        return None
    file.seek(at)
    tail = file.read()
    if tail[:HEADER_BYTES] != struct.pack("<BQ", Opcode.FOOTER, _FOOTER_BYTES) or not tail.endswith(MAGIC):
        return None
    start, _, crc = struct.unpack_from("<QQI", tail, HEADER_BYTES)
    if not 0 < start <= at:
        return None
    file.seek(start)
    section = file.read(at - start)
    is_whole = not crc or zlib.crc32(section + tail[: HEADER_BYTES + 16]) == crc
    return section + tail if is_whole else None
