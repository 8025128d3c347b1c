"""Extract every intact message from an MCAP file."""

import re
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from mcap.opcode import Opcode

from norm_core.bags.errors import BagError
from norm_core.bags.recovery.mcap_parts import (
    CHUNK_HEAD_BYTES,
    HEADER_BYTES,
    KNOWN,
    MAGIC,
    MESSAGE_HEAD,
    Channels,
    ChunkHead,
    chunk_head,
    read_summary,
    unpack,
)
from norm_core.bags.recovery.report import UNKNOWN_TOPIC, Fragment, Hole, Repair, SalvagedMessage
from norm_core.bags.storage import unpack_file
from norm_core.bags.topic import BagTopic

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
