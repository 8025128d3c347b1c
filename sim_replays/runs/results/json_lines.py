"""JSONL files of records, whose last line may be truncated."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.runtime.errors import TactfulError

R = TypeVar("R")


class RunError(TactfulError, OSError):
    """A folder is no run, belongs to another run or is not writable. Its contents are kept."""


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """Read the records of all complete lines; none where there is no file. Raises RunError."""
    records = []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            records += [from_json(kind, line)] if line else []
        except RecordError as error:
            raise RunError(f"{path}, line {number}: {error}; move the file away") from error
    return records


def append_lines(path: Path, records: Iterable[Any]) -> None:
    """Write one line a record. Raises RunError, and leaves no cut line."""
    if lines := "".join(f"{to_json(line)}\n" for line in records):
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(lines)
        except OSError as error:
            drop_cut_line(path)  # this needs no disk space
            raise RunError(
                f"{path.parent}: cannot be written to: {error}: make room, then give the same command again"
            ) from error


def drop_cut_line(path: Path) -> None:
    """Remove what follows the last complete line, as a killed run or a full disk leaves it."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)
