"""The folder of a run: its settings, and a JSONL file of records, whose last line may be truncated."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from norm_core.files.atomic_file import write_atomic
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.runtime.errors import TactfulError

SETTINGS = "config.json"
RECORDS = "raw.jsonl"
_RETRY = "make room, then give the same command again"

R = TypeVar("R")


class RunError(TactfulError, OSError):
    """A folder is not a run, belongs to another run or is not writable. Its contents remain."""


def begin_or_resume(folder: Path, settings: Mapping[str, Any]) -> None:
    """Create the folder, or check that it belongs to a run of the same settings. Drop a truncated record."""
    path = folder / SETTINGS
    if path.is_file():
        stored = _read_settings(path)
        different = [name for name, value in settings.items() if stored.get(name) != value]
        if different and (folder / RECORDS).is_file():
            values = "; ".join(f"{stored.get(name)!r} and not {settings[name]!r}" for name in different)
            raise RunError(
                f"{folder}: holds a run of another {', '.join(different)} ({values:.300}): choose another --out"
            )
        if different:  # the run ended before its first record
            _write_settings(path, settings)
    elif folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file: choose another --out")
    elif folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder}: holds other files and no run: choose another --out")
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder}: cannot be made: {error}") from error
        _write_settings(path, settings)
    _drop_cut_line(folder / RECORDS)


def read_records(folder: Path, kind: type[R]) -> Iterator[R]:
    """Read the records of all complete lines, one by one; none where there is no file. Raises RunError."""
    path = folder / RECORDS
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n") or line.isspace():
                continue
            try:
                yield from_json(kind, line)
            except RecordError as error:
                raise RunError(f"{path}, line {number}: {error}; move the file away") from error


def append_record(folder: Path, record: object) -> None:
    """Write a record as one line. Raises RunError, and leaves no cut line."""
    path = folder / RECORDS
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{to_json(record)}\n")
    except OSError as error:
        _drop_cut_line(path)  # this needs no disk space
        raise RunError(f"{folder}: cannot be written to: {error}: {_RETRY}") from error


def _drop_cut_line(path: Path) -> None:
    """Remove what follows the last complete line, as a killed run or a full disk leaves it."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path.parent}: is not the folder of a run: {error}; choose another --out") from error
    if not isinstance(plain, dict):
        raise RunError(f"{path}: is not the configuration of a run; choose another --out")
    return plain


def _write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    try:
        write_atomic(path, f"{json.dumps(settings, indent=2)}\n")
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}: {_RETRY}") from error
