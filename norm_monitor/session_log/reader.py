"""Read and verify study logs, chains of hashed lines. Every fault names its file and line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from norm_core.records.json_codec import RecordError, canonical, from_json, sha256_of
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_monitor.session_log.schema import AFTERWARDS, RECORDS, SCHEMA, Entry, Kind, Tombstone

GENESIS = "0" * 64

SEGMENT = "events-{:06d}.jsonl"
SEGMENTS = "events-*.jsonl"


class ChainError(ValueError):
    """A line does not match its hash."""


def link_hash(seq: int, kind: str, wall_ns: int, ros_ns: int, plain: Any, salt: str, prev: str) -> dict[str, Any]:  # noqa: PLR0917
    """Make the line of an entry, to be written as canonical JSON."""
    body = {"salt": salt, "record": plain}
    head = {
        "schema": SCHEMA,
        "seq": seq,
        "kind": kind,
        "wall_ns": wall_ns,
        "ros_ns": ros_ns,
        "body_sha256": sha256_of(body),
        "prev": prev,
    }
    return {**head, "hash": sha256_of(head), "body": body}


def to_line(line: dict[str, Any]) -> bytes:
    """Encode a line, including its newline."""
    return canonical(line) + b"\n"


def parse(text: bytes) -> dict[str, Any]:
    """Parse a line, and check nothing but its schema."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChainError(f"is not JSON: {error}") from error
    if not isinstance(line, dict) or not isinstance(line.get("schema"), int):
        raise ChainError("is no entry of a study log: it has no schema number")
    if line["schema"] != SCHEMA:
        raise ChainError(
            f"has the schema {line['schema']}, and this version reads {SCHEMA}: use the version that wrote it"
        )
    return line


def check_line(line: dict[str, Any], seq: int, prev: str) -> None:
    """Check that a line belongs at this place. Raises ChainError; accepts an erased body."""
    missing = {"seq", "kind", "wall_ns", "ros_ns", "body_sha256", "prev", "hash"} - line.keys()
    if missing:
        raise ChainError(f"lacks {', '.join(sorted(missing))}")
    head = {key: value for key, value in line.items() if key not in ("hash", "body")}
    if sha256_of(head) != line["hash"]:
        raise ChainError("was changed: its hash is not that of its contents")
    if line.get("body") is not None and sha256_of(line["body"]) != line["body_sha256"]:
        raise ChainError("was changed: its body is not the one it was written with")
    if line["seq"] != seq:
        raise ChainError(f"has the number {line['seq']} where {seq} belongs: lines were removed, added or moved")
    if line["prev"] != prev:
        raise ChainError("does not follow the line before it: lines were removed, added or moved")


def erase_body(line: dict[str, Any]) -> dict[str, Any]:
    """Remove body and salt from a line."""
    return {key: value for key, value in line.items() if key != "body"}


class LogError(TactfulError, ValueError):
    """A log cannot be used as it is; the message gives the remedy."""


@record
class Fault:
    """A fault at a line. A harmless fault leaves the rest reliable."""

    file: str
    line: int
    what: str
    harmless: bool = False


@record
class LogContents:
    """The readable content of a log. `head` is the hash to cite; `sealed` if the recording ended normally.

    Records under a tombstone are left out, even after an interrupted erasure, which `half_erased` counts.
    """

    entries: tuple[Entry, ...]
    faults: tuple[Fault, ...]
    head: str
    sealed: bool
    torn_bytes: int
    half_erased: int = 0


def is_log(path: Path) -> bool:
    """Whether the path is a single .jsonl file, or a folder with segments."""
    return path.suffix == ".jsonl" or (path.is_dir() and any(path.glob(SEGMENTS)))


def segments(path: Path) -> list[Path]:
    """List the files of a log, oldest first."""
    if not path.exists():
        raise LogError(f"{path}: there is no such log; check the path")
    files = [path] if path.is_file() else sorted(path.glob(SEGMENTS))
    if not files:
        raise LogError(f"{path}: holds no study log (no {SEGMENTS}); name the folder of one")
    return files


def read(path: Path) -> LogContents:
    """Read a log and its faults. Continues after a fault where possible."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    seq, prev, torn = 0, GENESIS, 0
    for file, number, text in lines(segments(path)):
        if not text.endswith(b"\n"):
            torn += len(text)
            faults.append(
                Fault(
                    file=file,
                    line=number,
                    what="is cut short: the writer died; the next writer sets it aside",
                    harmless=True,
                )
            )
            continue
        try:
            line = parse(text)
            expected = (seq, prev)
            seq, prev = int(line.get("seq", seq)) + 1, str(line.get("hash", prev))
            check_line(line, *expected)
            entry = entry_of(line, file, number)
        except (ChainError, RecordError, ValueError, TypeError) as error:
            faults.append(Fault(file=file, line=number, what=str(error)))
            continue
        entries.append(entry)
    if not entries and not faults:
        faults.append(Fault(file="", line=0, what="holds no entry: every log has one from its beginning"))
    buried = {seq for entry in entries if isinstance(entry.record, Tombstone) for seq in entry.record.seqs}
    faults += _find_unaccounted(entries, buried)
    return LogContents(
        entries=tuple(replace(entry, record=None) if entry.seq in buried else entry for entry in entries),
        faults=tuple(sorted(faults, key=lambda fault: (fault.file, fault.line))),
        head=prev,
        sealed=next((entry.kind is Kind.CLOSED for entry in reversed(entries) if entry.kind not in AFTERWARDS), False),
        torn_bytes=torn,
        half_erased=sum(entry.seq in buried and entry.record is not None for entry in entries),
    )


def read_sound(path: Path) -> LogContents:
    """Read a log, and raise LogError unless it is valid. Accepts a truncated last line."""
    contents = read(path)
    grave = [fault for fault in contents.faults if not fault.harmless]
    if grave:
        shown = "; ".join(f"{f.file}:{f.line} {f.what}" if f.file else f.what for f in grave[:3])
        raise LogError(
            f"{path}: is damaged, with {count_of(len(grave), 'fault')}: {shown}. "
            f"{PROGRAM} study status lists them all; {PROGRAM} study add adds the rest to a study"
        )
    return contents


def lines(files: list[Path]) -> Iterator[tuple[str, int, bytes]]:
    """Yield each line of a log's files, with file name and line number."""
    for path in files:
        try:
            with path.open("rb") as file:
                for number, text in enumerate(file, 1):
                    yield path.name, number, text
        except OSError as error:
            raise LogError(f"{path}: cannot be read: {error.strerror}; check its permissions and its disk") from error


def entry_of(line: dict[str, Any], file: str, number: int) -> Entry:
    """Parse the entry of a checked line. Raises ValueError, TypeError or RecordError for an invalid body."""
    kind = Kind(line["kind"])
    body = line.get("body")
    return Entry(
        seq=line["seq"],
        kind=kind,
        wall_ns=line["wall_ns"],
        ros_ns=line["ros_ns"],
        record=None if body is None else from_json(RECORDS[kind], canonical(body["record"])),
        file=file,
        line=number,
    )


def _find_unaccounted(entries: list[Entry], buried: set[int]) -> list[Fault]:
    """Find bodies missing without a tombstone, and bodies present despite one, which are one fault together."""
    faults = [
        Fault(file=entry.file, line=entry.line, what="its body is gone, and no tombstone says why")
        for entry in entries
        if entry.record is None and entry.seq not in buried
    ]
    if left := [entry for entry in entries if entry.record is not None and entry.seq in buried]:
        first = left[0]
        problem = f"entry {first.seq} was to be erased and is still there"
        if len(left) > 1:
            problem = f"{len(left)} entries were to be erased and are still there, the first is {first.seq}"
        remedy = f"run {PROGRAM} study withdraw again"
        faults.append(Fault(file=first.file, line=first.line, what=f"{problem}: {remedy}", harmless=True))
    return faults
