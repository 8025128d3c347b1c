"""The files of a run: its settings, and JSONL files of records, whose last line may be truncated."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from norm_core.files.atomic_file import write_atomic
from norm_core.records.json_codec import RecordError, from_json, to_json
from norm_core.runtime.errors import TactfulError

CONFIG, RAW, ASKED, BAG = "config.json", "raw.jsonl", "asked.jsonl", "bag"
# May differ between a run and its continuation.
_FREE = ("began", "versions", "shards")
_GO_ON = "make room, then give the same command again"

R = TypeVar("R")


class RunError(TactfulError, OSError):
    """A folder is no run, belongs to another run or is not writable. Its contents are kept."""


def read_lines(path: Path, kind: type[R]) -> Iterator[R]:
    """Read the records of all complete lines, one by one; none where there is no file. Raises RunError."""
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


def append_lines(path: Path, records: Iterable[Any]) -> None:
    """Write one line a record. Raises RunError, and leaves no cut line."""
    if lines := "".join(f"{to_json(line)}\n" for line in records):
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(lines)
        except OSError as error:
            drop_cut_line(path)  # this needs no disk space
            raise RunError(f"{path.parent}: cannot be written to: {error}: {_GO_ON}") from error


def drop_cut_line(path: Path) -> None:
    """Remove what follows the last complete line, as a killed run or a full disk leaves it."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)


def begin(folder: Path, config: Mapping[str, Any]) -> None:
    """Create the folder, or check that it belongs to the same run. Drops a truncated answer."""
    path = folder / CONFIG
    if path.is_file():
        stored = read_config(folder)
        different = [name for name in config if name not in _FREE and stored.get(name) != config[name]]
        if different and not (folder / RAW).is_file():  # the run ended before its first answer
            write_whole(path, f"{json.dumps(config, indent=2)}\n")
        elif different:
            raise RunError(
                f"{folder}: holds a run of another {', '.join(different)} "
                f"({'; '.join(f'{stored.get(name)!r} and not {config[name]!r}' for name in different)!s:.300}): "
                "choose another --out"
            )
    elif folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file: choose another --out")
    elif folder.exists() and {child.name for child in folder.iterdir()} not in (set(), {BAG, f"{BAG}.labels.json"}):
        raise RunError(f"{folder}: holds other files and no run: choose another --out")
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder}: cannot be made: {error}") from error
        write_whole(path, f"{json.dumps(config, indent=2)}\n")
    drop_cut_line(folder / RAW)
    drop_cut_line(folder / ASKED)


def read_config(folder: Path) -> dict[str, Any]:
    """Read a run's settings. Raises RunError."""
    try:
        plain = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: is no run's folder: {error}") from error
    if not isinstance(plain, dict):
        raise RunError(f"{folder / CONFIG}: is no run's configuration")
    return plain


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically."""
    try:
        write_atomic(path, text)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}: {_GO_ON}") from error
