"""Write a study log: append-only, hash-chained JSONL, synced at every entry; and recover a damaged one."""

import fcntl
import os
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from norm_core.files.atomic_file import atomic_file
from norm_core.records.json_codec import RecordError, to_plain
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import Clock, ReplayClock
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.reader import (
    GENESIS,
    SEGMENT,
    SEGMENTS,
    ChainError,
    LogError,
    check_line,
    entry_of,
    erase_body,
    lines,
    link_hash,
    parse,
    read,
    read_sound,
    segments,
    to_line,
)
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import KINDS, Closed, Entry, Kind, Recovered, SessionInfo, Tombstone

LOCK = ".lock"
MODE, FOLDER_MODE = 0o600, 0o700

UNNAMED = "unnamed"


class LogWriteError(TactfulError, OSError):
    """An entry is not on the disk.

    The log keeps it for the next append or flush, unless the queue of such entries is full.
    """


class StudyLog:
    """An open log with a single writer. Create it with begin or resume, and use it in a with statement."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        redactor: Redactor | None = None,
        *,
        rotate_bytes: int = 64_000_000,
        max_pending: int = 10_000,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self.folder, self._clock, self._redactor = folder, clock, redactor or Redactor()
        self._rotate_bytes, self._max_pending = rotate_bytes, max_pending
        self._write = write
        self._pending: deque[tuple[str, Any, int, int]] = deque()
        self._seq, self._prev, self._segment, self._size = 0, GENESIS, 0, 0
        self._fd = -1
        self._lock = lock_log(folder)

    @classmethod
    def begin(cls, folder: Path, info: SessionInfo, clock: Clock, **settings: Any) -> Self:
        """Start a new log in a folder without one."""
        try:
            folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f"{folder}: cannot be made: {error.strerror}; name a folder that can be written") from error
        if not all(map(_is_unstarted, folder.iterdir())):
            raise LogError(f"{folder}: is not empty; a log begins in a folder of its own (or resume the one there)")
        log = cls(folder, clock, **settings)
        try:
            for path in folder.glob("events-*"):
                path.unlink()
            log._next_segment()
            log.append(info, info.start_ns or 0)
        except (LogError, OSError):
            log.abandon()
            raise
        return log

    @classmethod
    def begin_or_resume(cls, folder: Path, info: SessionInfo, clock: Clock, **settings: Any) -> Self:
        """Begin a session's log, or continue it. Raises an error for another session's log."""
        if not any(_has_an_entry(path) for path in folder.glob(SEGMENTS)):
            return cls.begin(folder, info, clock, **settings)
        there = next((e.record for e in read(folder).entries if isinstance(e.record, SessionInfo)), None)
        if there is None or (there.study, there.session) != (info.study, info.session):
            whose = f"study {there.study}, session {there.session}" if there else "a session that it does not name"
            raise LogError(f"{folder}: is the log of {whose}; give this session a folder of its own")
        return cls.resume(folder, clock, **settings)

    @classmethod
    def resume(cls, folder: Path, clock: Clock, **settings: Any) -> Self:
        """Continue a log. Sets aside a partial entry left by a crash."""
        if not folder.is_dir():
            raise LogError(f"{folder}: there is no such log folder; check the path, or begin a new log")
        log = cls(folder, clock, **settings)
        try:
            last = segments(folder)[-1]
            torn = _set_torn_aside(last)
            contents = read_sound(folder)
            if not contents.entries:
                raise LogError(f"{folder}: holds no complete entry; begin a new log")
            log._seq, log._prev = contents.entries[-1].seq + 1, contents.head
            log._segment = int(last.stem.split("-")[1])
            if contents.half_erased:
                log._finish_erasures()
            log._reopen_last()
            if torn:
                log.append(Recovered(torn_bytes=torn), contents.entries[-1].ros_ns)
        except (LogError, OSError):
            log.abandon()
            raise
        return log

    @property
    def head(self) -> str:
        """The hash of the last entry, for citation."""
        return self._prev

    @property
    def entries(self) -> int:
        """The number of entries on disk."""
        return self._seq

    @property
    def pending_count(self) -> int:
        """The number of entries that wait for the disk."""
        return len(self._pending)

    def append(self, record: Any, ros_ns: int) -> None:
        """Write a redacted record, which is on disk on return. Raises LogWriteError."""
        if len(self._pending) >= self._max_pending:
            raise LogWriteError(
                f"{self.folder}: {count_of(len(self._pending), 'entry', 'entries')} "
                "already wait for the disk, so this one is lost: make room"
            )
        cleaned = self._redactor.clean(record)
        try:
            plain = to_plain(cleaned)
        except ValueError as error:  # before it is queued, because it would block every later entry
            raise LogError(f"{self.folder}: a {type(record).__name__} cannot be written as JSON: {error}") from error
        self._pending.append((KINDS[type(cleaned)].value, plain, ros_ns, self._clock.now_ns()))
        self.flush()

    def flush(self) -> None:
        """Write the waiting entries. Raises LogWriteError while the disk refuses them."""
        while self._pending:
            kind, plain, ros_ns, wall_ns = self._pending[0]
            line = link_hash(
                self._seq,
                kind,
                wall_ns,
                ros_ns,
                plain,
                os.urandom(16).hex(),
                self._prev,
            )
            try:
                self.write_line(to_line(line))
            except OSError as error:
                raise LogWriteError(
                    f"{self.folder}: entry {self._seq} could not be written ({error.strerror or error}); all "
                    "entries before it are on disk: make room"
                ) from error
            self._pending.popleft()
            self._seq, self._prev = self._seq + 1, line["hash"]

    def replace_entries(self, tombstone: Tombstone) -> None:
        """Write a tombstone, and erase the bodies that it names. Raises LogWriteError.

        The tombstone comes first: after a crash or a full disk, the next writer completes the erasure.
        """
        self.append(tombstone, 0)
        os.close(self._fd)
        self._fd = -1
        try:
            self._finish_erasures()
        finally:
            self._reopen_last()

    def close(self, *, sealed: bool = False) -> None:
        """Stop writing. `sealed` states that the recording is complete."""
        if self._fd < 0:
            return
        try:
            if sealed:
                self.flush()  # so that the count holds the entries that still waited
                self.append(Closed(entries=self._seq), 0)
            self.flush()
        finally:
            os.close(self._fd)
            self._fd = -1
            os.close(self._lock)

    def __enter__(self) -> Self:
        """Return the open log."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log. After an error in the block, a failure to write is not raised as well."""
        with suppress(LogWriteError) if error else nullcontext():  # it would hide the original error
            self.close()

    def write_line(self, data: bytes) -> None:
        """Append one line and sync it; OSError, and the file as before, where the disk does not take it."""
        if self._size and self._size + len(data) > self._rotate_bytes:
            self._next_segment()
        done = 0
        try:
            while done < len(data):
                done += self._write(self._fd, data[done:])
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)  # this frees space, so it works on a full disk
            raise
        self._size += len(data)

    def _reopen_last(self) -> None:
        path = self.folder / SEGMENT.format(self._segment)
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            self._size = path.stat().st_size
        except OSError as error:
            raise LogError(f"{path}: cannot be written: {error.strerror}; make room, or allow writing there") from error

    def _finish_erasures(self) -> None:
        """Erase the bodies that tombstones name, and everything derived from them. Safe to repeat."""
        try:
            for pattern in ("events-*.part", "events-*.torn"):  # a partial entry may be anybody's
                for path in self.folder.glob(pattern):
                    path.unlink()
            tombstones = [e.record for e in read(self.folder).entries if isinstance(e.record, Tombstone)]
            buried = {seq for stone in tombstones for seq in stone.seqs}
            for path in segments(self.folder):
                remove_bodies(path, buried)
        except OSError as error:
            raise LogWriteError(
                f"{self.folder}: an erasure is not finished ({error.strerror or error}): the entries are still on "
                "the disk, but no report or export shows them: make room, and run study withdraw again"
            ) from error

    def _next_segment(self) -> None:
        """Open the next file. On failure, the current one stays open."""
        path = self.folder / SEGMENT.format(self._segment + 1)
        descriptor = -1
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE)
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)  # without it, a crash could lose the file's name
            os.close(folder)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
                path.unlink(missing_ok=True)
            raise LogWriteError(
                f"{path}: cannot be made: {error.strerror or error}; make room, or allow writing there"
            ) from error
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size = descriptor, 0
        self._segment += 1

    def is_in_place(self) -> bool:
        """Whether the written file is the one that its folder shows; not if either was removed or replaced."""
        try:
            return os.path.samestat(os.fstat(self._fd), (self.folder / SEGMENT.format(self._segment)).stat())
        except OSError:
            return False

    def abandon(self) -> None:
        """Release the files of a log that could not begin, or that is gone."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        os.close(self._lock)


def lock_log(folder: Path) -> int:
    """Lock a log for its only writer, and return the descriptor to close. Raises LogError if another has it."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, MODE)
    except OSError as error:
        raise LogError(f"{folder}: cannot be written: {error.strerror}; make room, or allow writing there") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise LogError(f"{folder}: another process writes this log; end it first") from error
    return descriptor


def _has_an_entry(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


def _is_unstarted(path: Path) -> bool:
    """Whether a writer failed before the first entry of this file was complete."""
    if path.name == LOCK:
        return True
    entries = path.with_name(f"{path.name.partition('.')[0]}.jsonl")
    return path.match("events-*") and entries.exists() and not _has_an_entry(entries)


def _set_torn_aside(path: Path) -> int:
    """Move a truncated last line to a separate file. Returns its bytes."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    torn = data[whole:]
    if torn:
        aside = path.with_suffix(".torn")
        earlier = aside.read_bytes() if aside.exists() else b""
        try:
            with atomic_file(aside, mode=MODE, fsync=True) as file:
                file.write(earlier + torn)
        except OSError as error:
            what = f"its incomplete last entry cannot be moved ({error.strerror or error}): make room"
            raise LogWriteError(f"{path}: {what}") from error
        os.truncate(path, whole)
    return len(torn)


def remove_bodies(path: Path, seqs: set[int]) -> None:
    """Rewrite a file of entries without these bodies, if it holds any of them."""
    lines = [(parse(text), text) for text in path.read_bytes().splitlines(keepends=True)]
    if any(line["seq"] in seqs and "body" in line for line, _ in lines):
        with atomic_file(path, mode=MODE, fsync=True) as new:
            new.writelines(to_line(erase_body(line)) if line["seq"] in seqs else text for line, text in lines)


@record
class LogRecoveryReport:
    """The number of entries in the new log, and the losses of the old one."""

    entries: int
    lost: tuple[str, ...]


def recover_log(old: Path, folder: Path, *, study: str = "", session: str = "") -> LogRecoveryReport:
    """Write every line that matches its own hash to a new log, in order of their numbers.

    `study` and `session` name it where the entry that does is lost.
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
        info or SessionInfo(study=study or UNNAMED, session=session or old.resolve().name), migrated_from=contents.head
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
    """Read the entries that are valid on their own, and list the missing ones. Both omit erased entries."""
    sound: dict[int, Entry] = {}
    links: dict[int, tuple[str, str]] = {}  # by number: the previous line's hash, and the own one
    lost: list[str] = []
    for file, number, text in lines(segments(old)):
        try:
            line = parse(text)
            check_line(line, line.get("seq", -1), line.get("prev", ""))
            entry = entry_of(line, file, number)
        except (ChainError, RecordError, ValueError, TypeError) as error:
            lost.append(f"{file}:{number} {error}")
            continue
        if entry.seq in sound:
            lost.append(f"{file}:{number} has the number {entry.seq}, which an earlier line has")
            continue
        sound[entry.seq], links[entry.seq] = entry, (line["prev"], line["hash"])
    missing = sorted(set(range(max(sound, default=-1))) - sound.keys())
    if more := max(0, len(missing) - len(lost)):
        lost.append(f"{more} more entries; the numbers that are not there begin with {missing[0]}")
    buried = {seq for e in sound.values() if isinstance(e.record, Tombstone) for seq in e.record.seqs}
    for seq, entry in sound.items():
        where = f"{entry.file}:{entry.line}"
        if entry.record is None and seq not in buried:
            lost.append(f"{where} its body is gone, and no tombstone says why")
        if seq - 1 in sound and links[seq][0] != links[seq - 1][1]:
            lost.append(f"{where} does not follow the line before it: both are kept, and one is not the original")
    return {seq: replace(e, record=None) if seq in buried else e for seq, e in sound.items()}, lost
