"""Rebuild a valid bag from damaged MCAP files: the whole chunks up to the damage in each, and what is missing."""

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

from mcap.exceptions import EndOfFile, McapError
from mcap.records import Channel, Chunk, DataEnd, Header, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader
from rosbags.rosbag2.errors import ReaderError

from norm_core.bags.bounded_library import MAX_TOPICS, TOO_MANY_TOPICS, decompress_chunk
from norm_core.bags.storage import is_packed, is_sqlite, list_files, suggest_recovery, unpack_file
from norm_core.bags.topic import BagError, BagTopic, read_qos
from norm_core.bags.types import Definitions
from norm_core.bags.writer import BagWriteError, atomic_bag, partial_folder
from norm_core.decoding.unpacking import MAX_UNPACKED_BYTES, UnpackError, unpack_zstd_file
from norm_core.records.record import record

# The errors that the libraries raise for damage. BagError, UnpackError and UnicodeDecodeError are ValueErrors.
_UNREADABLE = (
    McapError, ReaderError, struct.error, ValueError, LookupError, TypeError, MemoryError, OverflowError,
)  # fmt: skip
# The MCAP record that ends the data of a file.
_DATA_END = b"\x0f" + struct.pack("<QI", 4, 0)

SalvagedMessage = tuple[BagTopic, int, bytes]  # topic, recording stamp in ns, CDR


@record
class BagRecoveryReport:
    """The result of a recovery; `stops` says where reading a file stopped early, and why."""

    bag: str
    made: str  # the path of the new bag
    messages: int
    messages_by_topic: dict[str, int]
    lost_by_topic: dict[str, int]  # by the counts of metadata.yaml; without it, messages that were left out
    last_ns: int | None
    stops: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_cut(self) -> bool:
        """Whether the rest of a file is missing or unreadable."""
        return bool(self.stops)

    @property
    def is_whole(self) -> bool:
        """Whether no loss is known."""
        return not (self.stops or self.lost_by_topic)


def recover_bag(
    bag: Path, out: Path, progress: Callable[[int, int], None] = lambda done, size: None
) -> BagRecoveryReport:
    """Write the readable messages of `bag` to a new MCAP bag at `out`; `progress` gets the bytes read and the total.

    Raises BagError for sqlite3 files, and if nothing can be read.
    """
    listing = list_files(bag)
    if sqlite := next(filter(is_sqlite, listing.files), None):
        raise BagError(f"{bag}: only MCAP files can be recovered here; {suggest_recovery(sqlite)}")
    size = sum(file.stat().st_size for file in listing.files)
    by_topic = Counter[str]()
    left_out = Counter[str]()
    stops: list[str] = []
    last_ns: int | None = None
    bytes_before = 0
    with atomic_bag(out) as writer:
        scratch = partial_folder(out) / "scratch"
        scratch.mkdir()
        for file in listing.files:
            definitions = Definitions()

            def report_progress(offset: int, bytes_before: int = bytes_before) -> None:
                progress(bytes_before + offset, size)

            try:
                for topic, stamp_ns, data in _salvage(file, scratch, report_progress):
                    if topic.serialization != "cdr":
                        left_out[topic.topic] += 1
                        continue
                    writer.write_copied(definitions.complete_topic(topic, data), data, stamp_ns)
                    by_topic[topic.topic] += 1
                    last_ns = max(stamp_ns, last_ns or 0)
            except BagWriteError:
                raise
            except OSError as error:
                raise BagError(f"{bag}: cannot be recovered: {error}") from error
            except _DamagedFileError as stop:
                stops.append(f"{file.name} {stop}")
            bytes_before += file.stat().st_size
            progress(bytes_before, size)
        if stops and not by_topic:
            raise BagError(f"{bag}: nothing in it can be recovered: {'; '.join(stops[:3])}")
    return BagRecoveryReport(
        bag=str(bag),
        made=str(out),
        messages=by_topic.total(),
        messages_by_topic=dict(sorted(by_topic.items())),
        lost_by_topic=dict(sorted((Counter(listing.promised) - by_topic if listing.promised else left_out).items())),
        last_ns=last_ns,
        stops=tuple(stops),
        notes=listing.notes,
    )


class _DamagedFileError(Exception):
    """A file cannot be read further."""


def _salvage(file: Path, scratch: Path, progress: Callable[[int], None]) -> Iterator[SalvagedMessage]:
    """Yield the messages of a file in its order. Raises _DamagedFileError if it cannot be read further."""
    partial_reason = ""
    if is_packed(file):
        with file.open("rb") as packed:
            file = scratch / file.stem
            try:
                unpack_zstd_file(packed, file)
            except UnpackError as error:
                partial_reason = f"can be decompressed only in part: {error}"
    yield from _read_mcap_messages(file, progress)
    if partial_reason:
        raise _DamagedFileError(partial_reason)


class _ExactReader:
    """A file that raises EndOfFile instead of returning fewer bytes than requested."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Read exactly `size` bytes."""
        data = self._file.read(size) if 0 <= size <= MAX_UNPACKED_BYTES else b""
        if len(data) != size:
            raise EndOfFile
        return data


def _read_mcap_messages(path: Path, progress: Callable[[int], None]) -> Iterator[SalvagedMessage]:
    schemas: dict[int, Schema] = {}
    topics: dict[int, BagTopic] = {}
    definition_bytes = 0
    whole_bytes = 0
    with path.open("rb") as file:
        try:
            for file_record in _read_records(file, is_file=True):
                # A chunk is read to its end first: a message of a chunk that ends in damage may be damaged itself.
                for entry in _unpack_chunk(file_record) if isinstance(file_record, Chunk) else [file_record]:
                    if isinstance(entry, Header) and entry.profile not in ("", "ros2"):
                        raise BagError(f"its profile is {entry.profile!r}, and that of ROS 2 is 'ros2'")
                    if isinstance(entry, Schema):
                        schemas.setdefault(entry.id, entry)
                        definition_bytes += len(entry.data)
                    elif isinstance(entry, Channel):
                        topics.setdefault(entry.id, _read_topic(entry, schemas))
                    elif isinstance(entry, Message):
                        if entry.log_time >= 1 << 63:
                            raise BagError(f"a message has the stamp {entry.log_time}")
                        yield topics[entry.channel_id], entry.log_time, unpack_file(entry.data)
                    if max(len(schemas), len(topics)) > MAX_TOPICS or definition_bytes > MAX_UNPACKED_BYTES:
                        raise BagError(TOO_MANY_TOPICS)
                whole_bytes = file.tell()
                progress(whole_bytes)
        except _UNREADABLE as error:
            raise _DamagedFileError(
                f"could be read up to byte {whole_bytes} of {path.stat().st_size}: {_describe_error(error)}"
            ) from error


def _read_records(file: IO[bytes], *, is_file: bool) -> Iterator[McapRecord]:
    """Yield the records up to the end of the data. Raises one of _UNREADABLE for damage."""
    reader = StreamReader(
        _ExactReader(file),  # type: ignore[arg-type]  # only its `read` is called
        skip_magic=not is_file,
        emit_chunks=True,
        record_size_limit=MAX_UNPACKED_BYTES,
    )
    for entry in reader.records:
        if isinstance(entry, DataEnd):
            return
        yield entry


def _unpack_chunk(chunk: Chunk) -> list[McapRecord]:
    content = decompress_chunk(chunk.data, chunk.compression, chunk.uncompressed_size, chunk.uncompressed_crc)
    return list(_read_records(BytesIO(content + _DATA_END), is_file=False))


def _read_topic(channel: Channel, schemas: dict[int, Schema]) -> BagTopic:
    schema = schemas[channel.schema_id] if channel.schema_id else None
    return BagTopic(
        topic=channel.topic,
        type_name=schema.name if schema else "",
        definition=schema.data.decode("utf-8", "replace") if schema else "",
        is_idl=schema is not None and schema.encoding in ("ros2idl", "omgidl"),
        serialization=channel.message_encoding,
        qos=tuple(read_qos(channel.metadata.get("offered_qos_profiles", ""))),
    )


def _describe_error(error: BaseException) -> str:
    return "the file ends there" if isinstance(error, EndOfFile) else str(error).rstrip(".") or type(error).__name__
