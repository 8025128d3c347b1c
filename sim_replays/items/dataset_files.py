"""The entries of a dataset's file or folder, under any file name. Errors name the entry."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from norm_core.runtime.config import Config, ConfigError, check_config
from sim_replays.items.target import SuiteError

C = TypeVar("C", bound=Config)

# Keys under which the list of a file may stand.
_LIST_KEYS = ("data", "items", "bundles", "annotations", "segments")
_MAX_KEYS_BESIDE_LIST = 2  # A file with more keys is an object of entries by id.
_MAX_FAULTS_SHOWN = 20


class _DuplicateKeyError(Exception):
    """A duplicate key; the JSON reader of Python would keep the last silently."""


def read_entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each entry with the words that locate it: of JSON lines, a list, or an object of entries by id."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from error
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: is not UTF-8 text (byte {error.start}); save it as such") from error
    if not text.strip():
        raise SuiteError(f"{path}: is empty; fetch it again")
    parsed = _read_lines(path, text) if path.suffix == ".jsonl" else _read_document(path, text)
    for where, entry in parsed:
        if not isinstance(entry, dict):
            raise SuiteError(f"{where}: is not a JSON object but {type(entry).__name__}; write one object an item")
        yield where, entry


def hash_files(paths: list[Path]) -> str:
    """Hash the bytes of files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs, whose keys have to differ."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return mapping


def _read_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(line)
            except ValueError as error:
                raise SuiteError(f"{where}: is not JSON, as where a file was cut: {error}; fetch it again") from error


def _read_document(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of one JSON value, or of JSON lines in a file with another suffix."""
    try:
        plain = json.loads(text, object_pairs_hook=_require_unique_keys)
    except _DuplicateKeyError as error:
        raise SuiteError(f"{path}: the key {error.args[0]!r} appears twice in one object; give each id once") from error
    except ValueError as error:
        if text.lstrip().startswith("{") and "\n{" in text.strip():
            yield from _read_lines(path, text)
            return
        raise SuiteError(f"{path}: is not JSON, as where a file was cut: {error}; fetch it again") from error
    if isinstance(plain, dict):
        inner = next((plain[name] for name in _LIST_KEYS if isinstance(plain.get(name), list | dict)), None)
        if inner is not None and len(plain) <= 1 + _MAX_KEYS_BESIDE_LIST:
            plain = inner
    if isinstance(plain, list):
        yield from ((f"{path}, entry {number}", entry) for number, entry in enumerate(plain))
    elif isinstance(plain, dict) and plain and all(isinstance(entry, dict) for entry in plain.values()):
        yield from ((f"{path}, {key!r}", {**entry, "id": key}) for key, entry in plain.items())
    else:
        yield str(path), plain


def read_annotations(path: Path, name: str, model: type[C], find_key: Callable[[C], str]) -> list[C]:
    """Read every annotation from the file of that name in a folder, or from the file itself."""
    if not path.exists():
        raise SuiteError(f"{path}: there is no such folder or file; check the path")
    file = path / name if path.is_dir() else path
    if not file.is_file():
        raise SuiteError(f"{path}: has no {name}; see docs/reference/file_formats_selection_and_models.md")
    checked: list[C] = []
    faults: list[str] = []
    first_by_key: dict[str, str] = {}
    for where, entry in read_entries(file):
        try:
            annotation = check_config(model, entry, where)
        except ConfigError as error:
            faults += str(error).splitlines()
            continue
        if (first := first_by_key.setdefault(find_key(annotation), where)) != where:
            faults.append(f"{where}: id: {find_key(annotation)!r} stands in {first} already")
        checked.append(annotation)
    raise_faults(faults)
    if not checked:
        raise SuiteError(f"{file}: holds no annotations; write one object a line")
    return checked


def raise_faults(faults: Sequence[str]) -> None:
    """Raise one SuiteError that lists the faults, if there are any."""
    if faults:
        more = [f"and {len(faults) - _MAX_FAULTS_SHOWN} more faults"] if len(faults) > _MAX_FAULTS_SHOWN else []
        raise SuiteError("\n".join([*faults[:_MAX_FAULTS_SHOWN], *more]))
