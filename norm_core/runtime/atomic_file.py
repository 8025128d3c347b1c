"""Files that appear whole: after a crash, an error or a full disk, the file of before is still there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_path(path: Path, *, fsync: bool = False, concurrent: bool = False) -> Iterator[Path]:
    """Give the name of a file to write, which takes the place of path where the block ends well.

    Until then it lies beside path, by its name and `.part`; concurrent, where other processes may write the same path,
    by the process's number too. A link is followed. A special file, as /dev/stdout, is written as it is. Raise OSError
    with path as its filename where it cannot be written. With fsync, the file outlasts a power cut.
    """
    if path.exists() and not path.is_file():
        with _told_of(path, path):
            yield path
        return
    target = path.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part" if concurrent else f"{target.name}.part")
    try:
        with _told_of(path, part):
            part.unlink(missing_ok=True)  # left by a process that was killed; it would keep its mode
            yield part
            if fsync:
                _sync(part)
            part.replace(target)
            if fsync:
                _sync(target.parent)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o666, fsync: bool = False, concurrent: bool = False) -> Iterator[BinaryIO]:
    """Give a binary file to write, as atomic_path; it has this mode, less the umask, from the first byte on."""
    with (
        atomic_path(path, fsync=fsync, concurrent=concurrent) as part,
        os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file,
    ):
        yield file


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o666, fsync: bool = False) -> None:
    """Write text, as UTF-8, or bytes, as atomic_file."""
    with atomic_file(path, mode=mode, fsync=fsync) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _told_of(path: Path, part: Path) -> Iterator[None]:
    """Name path in an error of its part, or of no file in particular."""
    try:
        yield
    except OSError as error:
        if error.filename not in {None, part, str(part)}:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
