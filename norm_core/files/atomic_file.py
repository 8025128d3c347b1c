"""Write files atomically: after a crash, an error or a full disk, the previous file remains."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_path(path: Path, *, fsync: bool = False, concurrent: bool = False) -> Iterator[Path]:
    """Yield the name of a temporary file, which replaces `path` when the block ends without an error.

    The temporary file is next to `path`, with the suffix `.part`. Set `concurrent` if other processes may write the
    same path: the name then includes the process number. A link is followed. A special file, such as /dev/stdout, is
    written directly. With `fsync`, the file survives a power cut. Raises OSError with `path` as its filename if the
    file cannot be written.
    """
    if path.exists() and not path.is_file():
        with _name_path_in_errors(path, path):
            yield path
        return
    target = path.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part" if concurrent else f"{target.name}.part")
    try:
        with _name_path_in_errors(path, part):
            part.unlink(missing_ok=True)  # a killed process may have left one with another mode
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
    """Yield a binary file to write, as `atomic_path` does; it has `mode`, less the umask, from its first byte."""
    with (
        atomic_path(path, fsync=fsync, concurrent=concurrent) as part,
        os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file,
    ):
        yield file


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o666, fsync: bool = False) -> None:
    """Write bytes, or text as UTF-8, as `atomic_file` does."""
    with atomic_file(path, mode=mode, fsync=fsync) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _name_path_in_errors(path: Path, part: Path) -> Iterator[None]:
    """Name `path` in an error about its temporary file or about no file in particular."""
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


@contextmanager
def private_path(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file that replaces `path` when complete, so that a full disk keeps the old file.

    Its owner alone can read it. A special file, such as /dev/stdout, stays as it is.
    """
    with atomic_path(path) as part:
        if not part.exists():
            part.touch(mode=0o600)
        yield part
