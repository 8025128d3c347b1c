"""The summary at the end of a complete MCAP file: topics, counts and chunk offsets."""

import struct
import zlib
from typing import BinaryIO

from mcap.opcode import Opcode

from norm_core.bags.mcap_parts import HEADER_BYTES, MAGIC, Channels
from norm_core.records.record import record

_FOOTER_BYTES = 20
_STATISTICS_HEAD = struct.Struct("<QHIIIIQQI")


@record
class Summary:
    """Chunk offsets in order, and messages by topic; None if the file has no counts."""

    chunk_offsets: tuple[int, ...]
    messages: dict[str, int] | None


def read_summary(file: BinaryIO, size: int, channels: Channels) -> Summary | None:
    """Return the summary and add its topics to `channels`; None if it is missing or damaged."""
    at = size - HEADER_BYTES - _FOOTER_BYTES - len(MAGIC)
    if at < 0:
        return None
    file.seek(at)
    tail = file.read()
    if (
        tail[0] != Opcode.FOOTER
        or not tail.endswith(MAGIC)
        or tail[1:HEADER_BYTES] != _FOOTER_BYTES.to_bytes(8, "little")
    ):
        return None
    start, _, crc = struct.unpack_from("<QQI", tail, HEADER_BYTES)
    if not 0 < start <= at:
        return None
    file.seek(start)
    section = file.read(at - start)
    if crc and zlib.crc32(section + tail[: HEADER_BYTES + 16]) != crc:
        return None
    return _parsed(section, size, channels)


def _parsed(section: bytes, size: int, channels: Channels) -> Summary | None:
    offsets: list[int] = []
    counts: dict[int, int] | None = None
    at = 0
    while at + HEADER_BYTES <= len(section):
        opcode, length = section[at], int.from_bytes(section[at + 1 : at + HEADER_BYTES], "little")
        body = section[at + HEADER_BYTES : at + HEADER_BYTES + length]
        at += HEADER_BYTES + length
        if len(body) != length or (opcode in (Opcode.SCHEMA, Opcode.CHANNEL) and not channels.learn(opcode, body)):
            return None
        if opcode == Opcode.CHUNK_INDEX and length >= 32:
            offsets.append(struct.unpack_from("<Q", body, 16)[0])
        elif opcode == Opcode.STATISTICS and length >= _STATISTICS_HEAD.size:
            entries = body[_STATISTICS_HEAD.size :]
            counts = dict(struct.iter_unpack("<HQ", entries[: len(entries) // 10 * 10]))
    if any(offset >= size for offset in offsets):
        return None
    messages: dict[str, int] | None = None
    if counts is not None:
        messages = {}
        for channel_id, count in counts.items():
            topic = channels.get(channel_id)
            if topic:
                messages[topic.topic] = messages.get(topic.topic, 0) + count
    return Summary(chunk_offsets=tuple(sorted(offsets)), messages=messages)
