"""The bag library with limits, because it trusts the sizes that a file states, and a file may come from anyone.

The library has no option that bounds decompression or the parsing of QoS. So this module replaces some of its
functions; import it before a file is opened.
"""

from pathlib import Path

from rosbags.rosbag2 import Reader, storage_mcap, storage_sqlite3

from norm_core.bags.topic import BagError, read_qos
from norm_core.decoding.unpacking import unpack_lz4, unpack_zstd

# A compressed chunk may hold this many records, plus one for each of its bytes.
_MIN_CHUNK_RECORDS = 4096
_RECORD_HEAD_BYTES = 9
_unchecked_decompress = storage_mcap.decompress


def decompress_chunk(data: bytes, compression: str, size: int, crc: int) -> bytes:
    """Unpack a chunk as the bag library does. Raises BagError for far more records than its size allows."""
    records = _unchecked_decompress(data, compression, size, crc)
    budget = _MIN_CHUNK_RECORDS + len(data)
    offset = 0
    while (len(records) - offset) // _RECORD_HEAD_BYTES > budget:
        offset += _RECORD_HEAD_BYTES + int.from_bytes(records[offset + 1 : offset + _RECORD_HEAD_BYTES], "little")
        budget -= 1
        if budget < 0:
            raise BagError(f"a chunk of {len(data)} bytes unpacks to more records than a recorder packs in it")
    return records


# The decompressors get the stated size as their limit; the library's own reader of QoS recurses.
storage_mcap.DECOMPRESSORS.update(lz4=unpack_lz4, zstd=unpack_zstd)
vars(storage_mcap).update(decompress=decompress_chunk)
for _storage in (storage_mcap, storage_sqlite3):
    vars(_storage).update(parse_qos=read_qos)


def open_bounded(path: Path) -> Reader:
    """Open a bag's file. Raises BagError, or an error of the library, if it is damaged or exceeds a limit."""
    reader = Reader(path)
    reader.open()
    _check_opened(reader, path)
    return reader


def _check_opened(reader: Reader, path: Path) -> None:
    """Raise BagError for topics without a name, and for chunks that state more than the file holds."""
    for connection in reader.connections:
        if not (isinstance(connection.topic, str) and isinstance(connection.msgtype, str)):
            raise BagError(f"names a topic or its type {connection.topic!r:.100}, which is not a text")
    chunks = reader.storage.chunks if isinstance(reader.storage, storage_mcap.McapReader) else ()
    if sum(chunk.chunk_length for chunk in chunks) > path.stat().st_size:
        raise BagError("its index states more chunks than the file has room for")
