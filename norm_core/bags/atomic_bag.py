"""Write a bag atomically: it appears once it is complete."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from norm_core.bags.writer import BagWriteError, BagWriter


@contextmanager
def atomic_bag(path: Path) -> Iterator[BagWriter]:
    """Yield a writer; its bag appears at `path` if the block ends without an error, or else not at all.

    Until then the bag is in a folder named after `path` with the suffix `.part`. The block may store temporary files
    there.
    """
    part = partial_folder(path)
    if path.exists():
        raise BagWriteError(f"{path}: exists already, and is not overwritten: name another folder, or remove it")
    try:
        part.mkdir(parents=True)
    except FileExistsError as error:
        raise BagWriteError(
            f"{part}: is there: another command is writing this bag, or one was killed at it; "
            "if none runs, remove that folder and run the same command again"
        ) from error
    except OSError as error:
        raise BagWriteError(f"cannot make a bag at {path}: {error.strerror}") from error
    try:
        new_bag = part / path.name
        writer = BagWriter(new_bag)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abort()
            raise
        _place(new_bag, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def partial_folder(path: Path) -> Path:
    """Return the folder of an incomplete bag."""
    return path.with_name(f"{path.name}.part")


def _place(new_bag: Path, path: Path) -> None:
    try:
        for file in (*new_bag.iterdir(), new_bag):
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        new_bag.rename(path)
    except OSError as error:
        raise BagWriteError(f"{path}: could not be completed: {error.strerror}") from error
