"""One file of a bag, opened by the bag library; a change during reading is an error."""

import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader, storage_mcap, storage_sqlite3

from norm_core.bags.errors import BagError
from norm_core.bags.listing import is_packed
from norm_core.bags.topic import read_qos
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.unpacking import UnpackError, unpack_lz4, unpack_zstd, unpack_zstd_file

RECOVER = f"save the readable part with {PROGRAM} bag recover BAG OUT"
# What SQLite leaves beside a database whose writer died: the newest messages, not yet merged into it.
UNMERGED = ("-wal", "-journal")
_ZSTD = b"\x28\xb5\x2f\xfd"
# The bag library unpacks a chunk whatever its size, and reads QoS by a loader that recurses. These are bounded; the
# former get the stated size as their limit.
storage_mcap.DECOMPRESSORS.update(lz4=unpack_lz4, zstd=unpack_zstd)
for _storage in (storage_mcap, storage_sqlite3):
    vars(_storage).update(parse_qos=read_qos)


class StorageFile:
    """An open file; its messages come in stamp order."""

    def __init__(self, path: Path) -> None:
        """Open the file, unpacked into a temporary folder if compressed. Raises BagError."""
        self.path = path
        self._seen = _state(path)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        beside = [path.with_name(path.name + end) for end in UNMERGED]
        if left := [file.name for file in beside if file.is_file() and file.stat().st_size]:
            raise BagError(
                f"{path.name}: its recorder died before {', '.join(left)} was merged into it: "
                f"play or copy it with rosbag2 once, or let {PROGRAM} bag recover merge it"
            )
        try:
            self._reader = Reader(self._unpacked() if is_packed(path) else path)
            self._reader.open()
        except Exception as error:  # the bag library raises its parsers' errors
            self._remove()
            raise BagError(f"{path.name}: {self._why(error)}") from error

    @property
    def connections(self) -> list[Connection]:
        """The topics of this file, with their types and QoS."""
        return self._reader.connections

    @property
    def message_count(self) -> int:
        """The number of messages over all topics of this file."""
        return self._reader.message_count

    @property
    def bounds_ns(self) -> tuple[int, int] | None:
        """The recording times of the first and the last message."""
        return (self._reader.start_time, self._reader.end_time - 1) if self._reader.message_count else None

    def messages(
        self, chosen: Collection[Connection], start_ns: int | None, stop_ns: int | None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield the messages of some connections; raise BagError for damage."""
        if not chosen:
            return
        stored = self._reader.messages(chosen, start_ns, stop_ns)
        while True:
            try:
                connection, stamp_ns, data = next(stored)
            except StopIteration:
                break
            except Exception as error:  # the bag library raises its parsers' errors
                raise BagError(self._why(error)) from error
            yield connection, stamp_ns, unpack_file(bytes(data))
        if self._has_changed():
            raise BagError(self._why(None))

    def close(self) -> None:
        """Close the file and delete its unpacked copy."""
        if self._reader.is_open:
            self._reader.close()
        self._remove()

    def _unpacked(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="tactful-bag-")
        target = Path(self._folder.name, self.path.stem)
        with self.path.open("rb") as packed:
            unpack_zstd_file(packed, target)
        return target

    def _remove(self) -> None:
        if self._folder:
            self._folder.cleanup()

    def _has_changed(self) -> bool:
        return _state(self.path) != self._seen

    def _why(self, error: Exception | None) -> str:
        if self._has_changed():
            return f"{self.path.name} changed while it was being read: wait until its recording or copying has ended"
        if isinstance(error, OSError) and error.strerror:
            return f"{error.strerror}: {error.filename or self.path.name}"
        if isinstance(error, KeyError):
            return f"{error} in it is nothing that ROS 2 writes: a foreign file, or a damaged one"
        return f"{str(error).rstrip('.') or type(error).__name__}; if it was cut short or damaged, {RECOVER}"


def unpack_file(data: bytes) -> bytes:
    """Decompress a message that was compressed on its own; no CDR message starts with that magic number."""
    if not data.startswith(_ZSTD):
        return data
    try:
        return unpack_zstd(data)
    except UnpackError as error:
        raise BagError(f"a compressed message cannot be read: {error}") from error


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
