"""Write a study log: append-only, hash-chained JSONL, synced at every entry; and recover a damaged one."""

import fcntl
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from norm_core.files.atomic_file import atomic_file
from norm_core.records.json_codec import RecordError, to_plain
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import Clock, ReplayClock
from norm_monitor.session_log.reader import (
    GENESIS,
    LOG_FILE,
    ChainError,
    LogError,
    check_line,
    encode_line,
    erase_body,
    find_log_file,
    link_entry,
    parse_entry,
    parse_line,
    read,
    read_lines,
    read_sound,
)
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import KINDS, Closed, Entry, Kind, Recovered, SessionInfo, Tombstone

_LOCK_FILE = ".lock"
# A log is readable by its owner alone.
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
# The study of a recovered log whose name is lost.
_UNNAMED = "unnamed"


class LogWriteError(TactfulError, OSError):
    """An entry is not on the disk. The entries before it are."""


class StudyLog:
    """An open log with a single writer. Create it with begin or resume, and use it in a with statement."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        redactor: Redactor | None = None,
        *,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self.folder = folder
        self._file = folder / LOG_FILE
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._write = write
        self._next_seq = 0
        self._last_hash = GENESIS
        self._size = 0
        self._fd = -1
        self._lock = lock_log(folder)

    @classmethod
    def begin(cls, folder: Path, info: SessionInfo, clock: Clock, **settings: Any) -> Self:
        """Begin a log in a folder without one. Raises LogError if the folder holds something else."""
        try:
            folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f"{folder}: cannot be made: {error.strerror}; name a folder that can be written") from error
        if not all(map(_is_unstarted, folder.iterdir())):
            raise LogError(f"{folder}: is not empty; a log begins in a folder of its own (or resume the one there)")
        log = cls(folder, clock, **settings)
        try:
            for path in folder.glob("events-*"):
                path.unlink()
            log._create_file()
            log.append(info, info.start_ns or 0)
        except (LogError, OSError):
            log.abandon()
            raise
        return log

    @classmethod
    def begin_or_resume(cls, folder: Path, info: SessionInfo, clock: Clock, **settings: Any) -> Self:
        """Begin a session's log, or continue it. Raises LogError for the log of another session."""
        if not _has_an_entry(folder / LOG_FILE):
            return cls.begin(folder, info, clock, **settings)
        logged = next((e.record for e in read(folder).entries if isinstance(e.record, SessionInfo)), None)
        if logged is None or (logged.study, logged.session) != (info.study, info.session):
            owner = f"study {logged.study}, session {logged.session}" if logged else "a session that it does not name"
            raise LogError(f"{folder}: is the log of {owner}; give this session a folder of its own")
        return cls.resume(folder, clock, **settings)

    @classmethod
    def resume(cls, folder: Path, clock: Clock, **settings: Any) -> Self:
        """Continue a log, and set aside a partial entry that a crash left. Raises LogError if it is not valid."""
        if not folder.is_dir():
            raise LogError(f"{folder}: there is no such log folder; check the path, or begin a new log")
        log = cls(folder, clock, **settings)
        try:
            torn_bytes = _set_torn_aside(find_log_file(folder))
            contents = read_sound(folder)
            if not contents.entries:
                raise LogError(f"{folder}: holds no complete entry; begin a new log")
            log._next_seq = contents.entries[-1].seq + 1
            log._last_hash = contents.head
            if contents.half_erased:
                log._erase_bodies()
            log._reopen_file()
            if torn_bytes:
                log.append(Recovered(torn_bytes=torn_bytes), contents.entries[-1].ros_ns)
        except (LogError, OSError):
            log.abandon()
            raise
        return log

    @property
    def head(self) -> str:
        """The hash of the last entry, for citation."""
        return self._last_hash

    @property
    def entries(self) -> int:
        """The number of entries on disk."""
        return self._next_seq

    def append(self, record: Any, ros_ns: int) -> None:
        """Write a redacted record, which is on disk on return.

        Raises LogWriteError if the disk does not take it, and LogError if it cannot be written as JSON.
        """
        cleaned = self._redactor.clean(record)
        kind = KINDS[type(cleaned)].value
        try:
            plain = to_plain(cleaned)
        except ValueError as error:
            raise LogError(f"{self.folder}: a {type(record).__name__} cannot be written as JSON: {error}") from error
        salt = os.urandom(16).hex()
        line = link_entry(self._next_seq, kind, self._clock.now_ns(), ros_ns, plain, salt, self._last_hash)
        try:
            self.write_line(encode_line(line))
        except OSError as error:
            raise LogWriteError(
                f"{self.folder}: entry {self._next_seq} could not be written ({error.strerror or error}); all "
                "entries before it are on disk: make room"
            ) from error
        self._next_seq += 1
        self._last_hash = line["hash"]

    def finish_erasures(self) -> None:
        """Erase the bodies that tombstones name. Raises LogWriteError; the next writer then completes the erasure."""
        os.close(self._fd)
        self._fd = -1
        try:
            self._erase_bodies()
        finally:
            self._reopen_file()

    def close(self, *, sealed: bool = False) -> None:
        """Stop writing. `sealed` states that the recording is complete. Raises LogWriteError if that is not written."""
        if self._fd < 0:
            return
        try:
            if sealed:
                self.append(Closed(entries=self._next_seq), 0)
        finally:
            self.abandon()

    def __enter__(self) -> Self:
        """Return the open log."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log."""
        self.close()

    def write_line(self, data: bytes) -> None:
        """Append a line and sync it. Raises OSError, and leaves the file as before, if the disk does not take it."""
        done = 0
        try:
            while done < len(data):
                done += self._write(self._fd, data[done:])
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)  # this frees space, so it works on a full disk
            raise
        self._size += len(data)

    def _reopen_file(self) -> None:
        """Open the log's file for appending. Raises LogError if it cannot be written."""
        try:
            self._fd = os.open(self._file, os.O_WRONLY | os.O_APPEND)
            self._size = self._file.stat().st_size
        except OSError as error:
            raise LogError(
                f"{self._file}: cannot be written: {error.strerror}; make room, or allow writing there"
            ) from error

    def _erase_bodies(self) -> None:
        """Erase the bodies that tombstones name, and partial entries. It is safe to repeat."""
        try:
            for pattern in ("events-*.part", "events-*.torn"):  # a partial entry may be anybody's
                for path in self.folder.glob(pattern):
                    path.unlink()
            tombstones = [e.record for e in read(self.folder).entries if isinstance(e.record, Tombstone)]
            remove_bodies(self._file, {seq for tombstone in tombstones for seq in tombstone.seqs})
        except OSError as error:
            raise LogWriteError(
                f"{self.folder}: an erasure is not finished ({error.strerror or error}): the entries are still on "
                "the disk, but no report or export shows them: make room, and run study withdraw again"
            ) from error

    def _create_file(self) -> None:
        """Create the log's file. Raises LogWriteError if it cannot be created."""
        try:
            self._fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)  # without it, a crash could lose the file's name
            os.close(folder)
        except OSError as error:
            raise LogWriteError(
                f"{self._file}: cannot be made: {error.strerror or error}; make room, or allow writing there"
            ) from error

    def is_in_place(self) -> bool:
        """Whether the open file is still the one in the folder: neither was removed or replaced."""
        try:
            return os.path.samestat(os.fstat(self._fd), self._file.stat())
        except OSError:
            return False

    def abandon(self) -> None:
        """Release the files of a log without sealing it, as of one that could not begin or is gone."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        os.close(self._lock)


def lock_log(folder: Path) -> int:
    """Lock a log for its only writer, and return the descriptor to close. Raises LogError if another has it."""
    try:
        descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror}; make room, or allow writing there") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise LogError(f"{folder}: another process writes this log; end it first") from error
    return descriptor


def _has_an_entry(path: Path) -> bool:
    """Whether a file exists and its first entry is complete."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def _is_unstarted(path: Path) -> bool:
    """Whether a file of the folder is of a writer that failed before its first entry was complete."""
    if path.name == _LOCK_FILE:
        return True
    log_file = path.with_name(LOG_FILE)
    return path.match("events-*") and log_file.exists() and not _has_an_entry(log_file)


def _set_torn_aside(path: Path) -> int:
    """Move a truncated last line to a separate file, and return its size in bytes."""
    data = path.read_bytes()
    sound_bytes = data.rfind(b"\n") + 1
    torn = data[sound_bytes:]
    if torn:
        torn_file = path.with_suffix(".torn")
        earlier = torn_file.read_bytes() if torn_file.exists() else b""
        try:
            with atomic_file(torn_file, mode=_FILE_MODE, fsync=True) as file:
                file.write(earlier + torn)
        except OSError as error:
            raise LogWriteError(
                f"{path}: its incomplete last entry cannot be moved ({error.strerror or error}): make room"
            ) from error
        os.truncate(path, sound_bytes)
    return len(torn)


def remove_bodies(path: Path, seqs: set[int]) -> None:
    """Rewrite the file of a log without these bodies, if it holds any of them."""
    lines = [(parse_line(text), text) for text in path.read_bytes().splitlines(keepends=True)]
    if any(line["seq"] in seqs and "body" in line for line, _ in lines):
        with atomic_file(path, mode=_FILE_MODE, fsync=True) as new:
            new.writelines(encode_line(erase_body(line)) if line["seq"] in seqs else text for line, text in lines)


@record
class LogRecoveryReport:
    """The number of entries in a recovered log, and the losses of the old one."""

    entries: int
    lost: tuple[str, ...]


def recover_log(old: Path, folder: Path, *, study: str = "", session: str = "") -> LogRecoveryReport:
    """Write every line that matches its own hash to a new log, in the order of their numbers.

    `study` and `session` name it if the entry that does is lost. Raises LogError if no line is intact.
    """
    sound, lost = _read_sound_entries(old)
    if not sound:
        raise LogError(f"{old}: holds no intact line, so nothing can be recovered; use a copy")
    contents = read(old)
    first = sound[min(sound)]
    entries = [entry for _, entry in sorted(sound.items()) if entry.kind is not Kind.CLOSED]
    info = next((entry.record for entry in entries if isinstance(entry.record, SessionInfo)), None)
    if info is None:
        lost.append("the entry that names the session and its participants")
    info = replace(
        info or SessionInfo(study=study or _UNNAMED, session=session or old.resolve().name), migrated_from=contents.head
    )
    clock = ReplayClock(first.wall_ns)
    with StudyLog.begin(folder, info, clock) as log:
        for entry in entries:
            clock.advance_to(max(entry.wall_ns, clock.now_ns()))
            if isinstance(entry.record, Tombstone):
                log.append(replace(entry.record, seqs=()), entry.ros_ns)  # it must not name the new log's entries
            elif entry.record is not None and not isinstance(entry.record, SessionInfo):
                log.append(entry.record, entry.ros_ns)
        log.append(Recovered(torn_bytes=contents.torn_bytes, lost=tuple(lost)), 0)
        log.close(sealed=contents.sealed)
    return LogRecoveryReport(entries=log.entries, lost=tuple(lost))


def _read_sound_entries(old: Path) -> tuple[dict[int, Entry], list[str]]:
    """Read the entries that are valid on their own, and list the missing ones. Both leave out erased entries."""
    sound: dict[int, Entry] = {}
    links: dict[int, tuple[str, str]] = {}  # by number: the hash of the line before, and the line's own
    lost: list[str] = []
    path = find_log_file(old)
    file = path.name
    for number, text in read_lines(path):
        try:
            line = parse_line(text)
            check_line(line, line.get("seq", -1), line.get("prev", ""))
            entry = parse_entry(line, file, number)
        except (ChainError, RecordError, ValueError, TypeError) as error:
            lost.append(f"{file}:{number} {error}")
            continue
        if entry.seq in sound:
            lost.append(f"{file}:{number} has the number {entry.seq}, which an earlier line has")
            continue
        sound[entry.seq] = entry
        links[entry.seq] = (line["prev"], line["hash"])
    missing = sorted(set(range(max(sound, default=-1))) - sound.keys())
    if (unread_count := len(missing) - len(lost)) > 0:
        lost.append(f"{unread_count} more entries; the first missing number is {missing[0]}")
    erased = {seq for e in sound.values() if isinstance(e.record, Tombstone) for seq in e.record.seqs}
    for seq, entry in sound.items():
        where = f"{entry.file}:{entry.line}"
        if entry.record is None and seq not in erased:
            lost.append(f"{where} its body is gone, and no tombstone says why")
        if seq - 1 in sound and links[seq][0] != links[seq - 1][1]:
            lost.append(f"{where} does not follow the line before it: both are kept, and one is not the original")
    return {seq: replace(e, record=None) if seq in erased else e for seq, e in sound.items()}, lost
