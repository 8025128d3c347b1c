"""Extract every intact message from an MCAP file. No length in the file is trusted."""

import re
import struct
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, ChunkIndex, Schema, Statistics
from mcap.stream_reader import StreamReader

from norm_core.bags.recovery.report import UNKNOWN_TOPIC, Fragment, Hole, Repair, SalvagedMessage
from norm_core.bags.storage import unpack_file
from norm_core.bags.topic import BagError, BagTopic, read_qos
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


_MAX_RECORD_BYTES = 1 << 32
_SEARCH_BYTES = 1 << 20
# A chunk record up to the name of its compression; `chunk_head` validates a match.
_CHUNK_BEGINS = re.compile(rb"\x06(?=.{5}\0{3}.{28}(?:\0{4}|\x03\0{3}lz4|\x04\0{3}zstd))", re.DOTALL)
_CUT = "ends within a record"


class McapSalvage:
    """One pass over a file, one chunk at a time; `progress` gets the bytes done."""

    def __init__(self, path: Path, progress: Callable[[int], None]) -> None:
        self._path = path
        self._size = path.stat().st_size
        self._progress = progress
        self._channels = Channels()
        self._file: BinaryIO
        self._chunk_offsets: tuple[int, ...] = ()
        self.expected: dict[str, int] | None = None  # messages by topic, if the file's end still states them

    def fragments(self) -> Iterator[Fragment]:
        """Yield messages, holes and repairs in file order; iterate only once."""
        with self._path.open("rb") as file:
            self._file = file
            summary = read_summary(file, self._size, self._channels)
            if summary:
                self._chunk_offsets, self.expected = summary.chunk_offsets, summary.messages
            else:
                self._learn_ahead()
            begins = self._read(0, len(MAGIC)) == MAGIC
            ended = yield from self._data(len(MAGIC) if begins else 0)
        if not ended:
            yield Repair(file=self._path.name, what="has no end: its recording was cut short", is_cut=True)
        elif summary is None:
            yield Repair(file=self._path.name, what="has no index that can be read")

    def _data(self, at: int) -> Generator[Fragment, None, bool]:
        """Read the data section from a byte offset; return whether its end was reached."""
        while at < self._size:
            self._progress(at)
            opcode, length = self._header(at)
            end = at + HEADER_BYTES + length
            if opcode in (Opcode.DATA_END, Opcode.FOOTER) and length <= 20:
                return True
            head = self._chunk_head(at, length) if opcode == Opcode.CHUNK else None
            if head:
                yield from self._chunk(at, head)
                at = min(end, self._size)
            elif self._is_cut(at, opcode, length):
                yield self._hole(at, self._size - at, _CUT)
                return False
            elif opcode == Opcode.CHUNK or end > self._size or not self._begins_record(at):
                after = self._next_chunk(at + 1)
                yield self._hole(at, after - at, "is damaged")
                at = after
            else:
                yield from self._record(at, opcode, length)
                at = end
        return False

    def _learn_ahead(self) -> None:
        """Read the topics stated outside chunks first, in case a damaged chunk stated them."""
        at = len(MAGIC)
        while at < self._size and self._begins_record(at):
            opcode, length = self._header(at)
            if opcode in (Opcode.SCHEMA, Opcode.CHANNEL) and not self._channels.learn(
                opcode, self._read(at + HEADER_BYTES, length)
            ):
                return
            at += HEADER_BYTES + length

    def _record(self, at: int, opcode: int, length: int) -> Iterator[Fragment]:
        """Yield the content of a complete record outside a chunk."""
        if opcode == Opcode.MESSAGE:
            body = self._read(at + HEADER_BYTES, length)
            # A wrong length shows in the next record.
            if self._begins_record(at + HEADER_BYTES + length):
                yield self._message(at, body)
            else:
                yield self._hole(at, HEADER_BYTES + length, "is damaged")
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            if not self._channels.learn(opcode, self._read(at + HEADER_BYTES, length)):
                yield self._hole(at, HEADER_BYTES + length, "states a topic that cannot be read")
        elif opcode == Opcode.HEADER:
            body = self._read(at + HEADER_BYTES, min(length, 64))
            profile = body[4 : 4 + int.from_bytes(body[:4], "little")].decode("utf-8", "replace")
            if profile not in ("", "ros2"):
                raise BagError(f"{self._path}: is an MCAP file of the profile {profile!r}, no recording of ROS 2")

    def _chunk(self, at: int, head: ChunkHead) -> Iterator[Fragment]:
        there = min(head.data_bytes, self._size - at - head.data_offset)
        records, wrong = unpack(head, self._read(at + head.data_offset, there))
        is_cut = there < head.data_bytes
        counts: Counter[str] = Counter()
        last_message: Fragment | None = None
        offset = 0
        while offset < len(records):
            opcode, length = records[offset], int.from_bytes(records[offset + 1 : offset + HEADER_BYTES], "little")
            end = offset + HEADER_BYTES + length
            if opcode not in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE) or end > len(records):
                wrong = wrong or "holds what is no record"
                break
            body = records[offset + HEADER_BYTES : end]
            if opcode == Opcode.MESSAGE:
                if last_message:
                    yield last_message
                last_message = self._message(at, body)
                if isinstance(last_message, SalvagedMessage):
                    counts[last_message.topic.topic] += 1
            elif not self._channels.learn(opcode, body):
                wrong = wrong or "states a topic that cannot be read"
            offset = end
        # If a chunk ends early without truncation, its last message may contain the damage.
        if last_message and (is_cut or not wrong):
            yield last_message
        elif isinstance(last_message, SalvagedMessage):
            counts[last_message.topic.topic] -= 1
        if wrong:
            lost = self._indexed_after(at + head.data_offset + head.data_bytes) - counts
            # The compressed size of one message is unknown: count all of it.
            passed = 0 if head.compression else min(offset, there)
            begin = at + head.data_offset + passed
            yield self._hole(begin, there - passed, f"has a chunk that {wrong}", is_chunk=True, lost=lost)

    def _message(self, at: int, body: bytes) -> Fragment:
        if len(body) < MESSAGE_HEAD.size:
            return self._hole(at, len(body), "is damaged")
        channel_id, _, stamp_ns, _ = MESSAGE_HEAD.unpack_from(body)
        topic: BagTopic | None = self._channels.get(channel_id)
        if topic is None or topic.serialization != "cdr" or stamp_ns >= 1 << 63:
            why = (
                "has a message whose topic is stated nowhere" if topic is None else "has a message that is not of ROS 2"
            )
            return self._hole(at, len(body), why, lost={topic.topic if topic else UNKNOWN_TOPIC: 1})
        try:
            return SalvagedMessage(topic=topic, stamp_ns=stamp_ns, data=unpack_file(body[MESSAGE_HEAD.size :]))
        except BagError:
            return self._hole(at, len(body), "has a compressed message that is damaged", lost={topic.topic: 1})

    def _indexed_after(self, at: int) -> Counter[str]:
        """Count the messages of a chunk by topic, from the indexes after it."""
        counted: Counter[str] = Counter()
        while at < self._size:
            opcode, length = self._header(at)
            if opcode != Opcode.MESSAGE_INDEX or at + HEADER_BYTES + length > self._size:
                break
            body = self._read(at + HEADER_BYTES, 6)
            if len(body) == 6:
                channel_id, size = struct.unpack("<HI", body)
                topic = self._channels.get(channel_id)
                counted[topic.topic if topic else UNKNOWN_TOPIC] += min(size, length) // 16
            at += HEADER_BYTES + length
        return counted

    def _is_cut(self, at: int, opcode: int, length: int) -> bool:
        """Whether the file ends inside an apparent record: then nothing inside it is searched."""
        left = self._size - at - HEADER_BYTES
        if left < 0:
            return True
        if left >= length or opcode not in KNOWN or length > _MAX_RECORD_BYTES:
            return False
        if opcode == Opcode.CHUNK:
            return left < CHUNK_HEAD_BYTES
        body = self._read(at + HEADER_BYTES, 6)
        if opcode == Opcode.MESSAGE_INDEX:
            return len(body) < 6 or struct.unpack("<HI", body)[1] == length - 6
        if opcode == Opcode.MESSAGE:
            return len(body) < 2 or self._channels.get(struct.unpack_from("<H", body)[0]) is not None
        return True

    def _next_chunk(self, at: int) -> int:
        """Find the next chunk from a byte offset: by the index, or else by its pattern, or else the file's end."""
        if self._chunk_offsets:
            index = bisect_right(self._chunk_offsets, at - 1)
            return self._chunk_offsets[index] if index < len(self._chunk_offsets) else self._size
        overlap = HEADER_BYTES + CHUNK_HEAD_BYTES
        while at < self._size:
            self._progress(at)
            block = self._read(at, _SEARCH_BYTES + overlap)
            for match in _CHUNK_BEGINS.finditer(block):
                begin = at + match.start()
                if match.start() < _SEARCH_BYTES and self._chunk_head(begin, self._header(begin)[1]):
                    return begin
            at += _SEARCH_BYTES
        return self._size

    def _begins_record(self, at: int) -> bool:
        if at >= self._size:
            return at == self._size
        opcode, length = self._header(at)
        return (opcode in KNOWN and length <= _MAX_RECORD_BYTES) or opcode >= 0x80

    def _header(self, at: int) -> tuple[int, int]:
        header = self._read(at, HEADER_BYTES)
        return header[0], int.from_bytes(header[1:], "little")

    def _chunk_head(self, at: int, length: int) -> ChunkHead | None:
        return chunk_head(self._read(at + HEADER_BYTES, CHUNK_HEAD_BYTES), length)

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)

    def _hole(
        self, at: int, length_bytes: int, why: str, *, is_chunk: bool = False, lost: dict[str, int] | None = None
    ) -> Hole:
        return Hole(
            file=self._path.name,
            offset=at,
            length_bytes=length_bytes,
            why=why,
            is_chunk=is_chunk,
            lost=dict(lost or {}),
        )
