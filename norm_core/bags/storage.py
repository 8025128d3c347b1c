"""The files of a bag with the message counts of its metadata.yaml, and one open file."""

import re
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rosbags.interfaces import Connection

from norm_core.bags.bounded_library import open_bounded
from norm_core.bags.topic import BagError
from norm_core.decoding.unpacking import UnpackError, unpack_zstd, unpack_zstd_file
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, load_config

METADATA = "metadata.yaml"
# How the name of a storage file ends.
STORED_AS = (".mcap", ".db3")
# The further ending of a whole file that was compressed after its recording.
_PACKED = ".zstd"
# How the names of files end that hold the newest messages of a database whose writer died.
_UNMERGED = ("-wal", "-journal")
# The first bytes of a zstd frame.
_ZSTD = b"\x28\xb5\x2f\xfd"


@record
class Listing:
    """The files in recording order, with the counts and digests of metadata.yaml, empty without one."""

    files: tuple[Path, ...]
    promised: dict[str, int]
    digests: dict[str, str]
    notes: tuple[str, ...] = ()


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Topic(_Part):
    name: str
    type_description_hash: str = ""


class _Counted(_Part):
    topic_metadata: _Topic
    message_count: int


class _Information(_Part):
    relative_file_paths: list[str]
    topics_with_message_count: list[_Counted] = []


class _Metadata(_Part):
    rosbag2_bagfile_information: _Information


def is_stored(path: Path) -> bool:
    """Return whether the file's name is that of a bag storage file."""
    return path.name.removesuffix(_PACKED).endswith(STORED_AS)


def is_bag(path: Path) -> bool:
    """Return whether a folder or file looks like a bag, whole or damaged."""
    if path.is_file():
        return is_stored(path)
    return path.is_dir() and ((path / METADATA).is_file() or any(is_stored(file) for file in path.iterdir()))


def suggest_recovery(path: Path) -> str:
    """Return the command that saves the readable part of a damaged file."""
    if path.name.removesuffix(_PACKED).endswith(".db3"):
        return f"save its readable rows with sqlite3 {path.name} .recover | sqlite3 NEW.db3"
    return f"save its readable part with mcap recover {path.name} -o NEW.mcap"


def list_files(path: Path) -> Listing:
    """List the files of a bag's folder, or the single file `path`. Raises BagError if there is none."""
    if not path.exists():
        raise BagError(f"{path}: there is no such folder or file; check the path")
    if path.is_file():
        if not is_stored(path):
            raise BagError(f"{path}: is not a bag: neither a folder nor a file that ends in {' or '.join(STORED_AS)}")
        return Listing(files=(path,), promised={}, digests={})
    files = sorted((file for file in path.iterdir() if file.is_file() and is_stored(file)), key=make_natural_key)
    information, notes = _read_metadata(path)
    if information is None:
        if not files:
            fault = notes[0] if notes else f"has no {METADATA}"
            raise BagError(f"{path}: cannot be opened as a bag: it {fault}, and no file in it ends in .mcap or .db3")
        return Listing(files=tuple(files), promised={}, digests={}, notes=tuple(notes))
    names = [Path(name).name for name in information.relative_file_paths]
    missing = [name for name in names if not (path / name).is_file()]
    unlisted = [file for file in files if file.name not in names]
    if missing and not files:
        raise BagError(
            f"{path}: cannot be opened as a bag: {METADATA} lists {', '.join(missing)}, and no such file is there"
        )
    if missing:
        notes.append(f"{METADATA} is out of date: {', '.join(missing)} is not there")
    if unlisted:
        notes.append(f"{METADATA} is out of date: it does not list {', '.join(file.name for file in unlisted)}")
    promised: dict[str, int] = {}
    digests: dict[str, str] = {}
    for counted in information.topics_with_message_count:
        name = counted.topic_metadata.name
        promised[name] = promised.get(name, 0) + counted.message_count
        digests[name] = counted.topic_metadata.type_description_hash
    present = tuple(path / name for name in names if name not in missing)
    return Listing(files=(*present, *unlisted), promised=promised, digests=digests, notes=tuple(notes))


def _read_metadata(path: Path) -> tuple[_Information | None, list[str]]:
    file = path / METADATA
    if not file.is_file():
        return None, [f"has no {METADATA}"]
    try:
        return load_config(_Metadata, file).rosbag2_bagfile_information, []
    except ConfigError as error:
        return None, [f"has a {METADATA} that cannot be read ({str(error).splitlines()[0].removeprefix(f'{path}/')})"]


def make_natural_key(path: Path) -> tuple[object, ...]:
    """Make a key that sorts session_2 before session_10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path)))


class StorageFile:
    """An open file, whose messages come in stamp order."""

    def __init__(self, path: Path) -> None:
        """Open the file, unpacked into a temporary folder if compressed. Raises BagError."""
        self.path = path
        self._initial_state = _read_state(path)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        log_files = [path.with_name(path.name + end) for end in _UNMERGED]
        if unmerged := [file.name for file in log_files if file.is_file() and file.stat().st_size]:
            raise BagError(
                f"{path.name}: its recorder died before {', '.join(unmerged)} was merged into it: "
                f"play or copy it with rosbag2 once, or merge it with sqlite3 {path.name} .tables"
            )
        try:
            file = self._unpack() if path.suffix == _PACKED else path
            self._reader = open_bounded(file)
        except Exception as error:  # the bag library raises its parsers' errors
            self._remove()
            raise BagError(f"{path.name}: {self._describe_fault(error)}") from error

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
        self, connections: Collection[Connection], start_ns: int | None, stop_ns: int | None
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield the messages of some connections. Raises BagError for damage."""
        if not connections:
            return
        messages = self._reader.messages(connections, start_ns, stop_ns)
        while True:
            try:
                connection, stamp_ns, data = next(messages)
            except StopIteration:
                break
            except Exception as error:  # the bag library raises its parsers' errors
                raise BagError(self._describe_fault(error)) from error
            if not isinstance(data, bytes):
                raise BagError(
                    f"a message on {connection.topic} holds {type(data).__name__} in place of bytes, which no recorder "
                    f"writes; {suggest_recovery(self.path)}"
                )
            yield connection, stamp_ns, unpack_file(data)
        if self._has_changed():
            raise BagError(self._describe_fault(None))

    def close(self) -> None:
        """Close the file and delete its unpacked copy."""
        if self._reader.is_open:
            self._reader.close()
        self._remove()

    def _unpack(self) -> Path:
        self._folder = tempfile.TemporaryDirectory(prefix="tactful-bag-")
        target = Path(self._folder.name, self.path.stem)
        with self.path.open("rb") as packed:
            unpack_zstd_file(packed, target)
        return target

    def _remove(self) -> None:
        if self._folder:
            self._folder.cleanup()

    def _has_changed(self) -> bool:
        return _read_state(self.path) != self._initial_state

    def _describe_fault(self, error: Exception | None) -> str:
        if self._has_changed():
            return f"{self.path.name} changed while it was being read: wait until its recording or copying has ended"
        if isinstance(error, BagError):
            return str(error)
        if isinstance(error, OSError) and error.strerror:
            return f"{error.strerror}: {error.filename or self.path.name}"
        if isinstance(error, (KeyError, TypeError)):
            return f"{error} in it is nothing that ROS 2 writes: a foreign file, or a damaged one"
        fault = str(error).rstrip(".") or type(error).__name__
        return f"{fault}; if it was cut short or damaged, {suggest_recovery(self.path)}"


def unpack_file(data: bytes) -> bytes:
    """Decompress a message that was compressed on its own; no CDR message starts with that magic number."""
    if not data.startswith(_ZSTD):
        return data
    try:
        return unpack_zstd(data)
    except UnpackError as error:
        raise BagError(f"a compressed message cannot be read: {error}") from error


def _read_state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
