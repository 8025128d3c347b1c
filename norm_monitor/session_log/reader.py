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
from norm_monitor.session_log.schema import KINDS_AFTER_END, RECORDS, SCHEMA, Entry, Kind, Tombstone

# The hash before the first entry.
GENESIS = "0" * 64
# The file of a log in its folder.
LOG_FILE = "events-000001.jsonl"
# The keys of every line; an erased one has no body.
_LINE_KEYS = frozenset({"seq", "kind", "wall_ns", "ros_ns", "body_sha256", "prev", "hash"})
# The number of faults that an error names.
_MAX_NAMED_FAULTS = 3


class ChainError(ValueError):
    """A line does not match its hash."""


def link_entry(seq: int, kind: str, wall_ns: int, ros_ns: int, plain: Any, salt: str, prev: str) -> dict[str, Any]:  # noqa: PLR0917
    """Make the line of an entry, which is linked to the one before by the hash `prev`."""
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


def encode_line(line: dict[str, Any]) -> bytes:
    """Encode a line as canonical JSON, including its newline."""
    return canonical(line) + b"\n"


def parse_line(text: bytes) -> dict[str, Any]:
    """Parse a line, and check nothing but its schema. Raises ChainError for another one."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChainError(f"is not JSON: {error}") from error
    if not isinstance(line, dict) or not isinstance(line.get("schema"), int):
        raise ChainError("is not an entry of a study log: it has no schema number")
    if line["schema"] != SCHEMA:
        raise ChainError(
            f"has the schema {line['schema']}, and this version reads {SCHEMA}: use the version that wrote it"
        )
    return line


def check_line(line: dict[str, Any], seq: int, prev: str) -> None:
    """Check that a line has this number and follows this hash. Its body may be erased. Raises ChainError."""
    missing = _LINE_KEYS - line.keys()
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
    """Whether the path is a .jsonl file, or a folder with the file of a log."""
    return path.suffix == ".jsonl" or (path / LOG_FILE).is_file()


def find_log_file(path: Path) -> Path:
    """Return the file of a log, from itself or from its folder. Raises LogError if it does not exist."""
    if not path.exists():
        raise LogError(f"{path}: there is no such log; check the path")
    file = path if path.is_file() else path / LOG_FILE
    if not file.is_file():
        raise LogError(f"{path}: holds no study log (no {LOG_FILE}); name the folder of one")
    return file


def read(path: Path) -> LogContents:
    """Read a log and its faults. Continue after a fault where possible."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    seq = torn_bytes = 0
    prev = GENESIS
    path = find_log_file(path)
    file = path.name
    for number, text in read_lines(path):
        if not text.endswith(b"\n"):
            torn_bytes += len(text)
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
            line = parse_line(text)
            expected = (seq, prev)
            seq = int(line.get("seq", seq)) + 1
            prev = str(line.get("hash", prev))
            check_line(line, *expected)
            entry = parse_entry(line, file, number)
        except (ChainError, RecordError, ValueError, TypeError) as error:
            faults.append(Fault(file=file, line=number, what=str(error)))
            continue
        entries.append(entry)
    if not entries and not faults:
        faults.append(Fault(file="", line=0, what="holds no entry: every log has one from its beginning"))
    erased = {seq for entry in entries if isinstance(entry.record, Tombstone) for seq in entry.record.seqs}
    faults += _find_erasure_faults(entries, erased)
    recorded_kinds = [entry.kind for entry in entries if entry.kind not in KINDS_AFTER_END]
    return LogContents(
        entries=tuple(replace(entry, record=None) if entry.seq in erased else entry for entry in entries),
        faults=tuple(sorted(faults, key=lambda fault: (fault.file, fault.line))),
        head=prev,
        sealed=bool(recorded_kinds) and recorded_kinds[-1] is Kind.CLOSED,
        torn_bytes=torn_bytes,
        half_erased=sum(entry.seq in erased and entry.record is not None for entry in entries),
    )


def read_sound(path: Path) -> LogContents:
    """Read a log whose last line may be truncated. Raises LogError if it is damaged otherwise."""
    contents = read(path)
    faults = [fault for fault in contents.faults if not fault.harmless]
    if faults:
        named_faults = "; ".join(
            f"{fault.file}:{fault.line} {fault.what}" if fault.file else fault.what
            for fault in faults[:_MAX_NAMED_FAULTS]
        )
        raise LogError(
            f"{path}: is damaged, with {count_of(len(faults), 'fault')}: {named_faults}. "
            f"{PROGRAM} study status lists them all; {PROGRAM} study add adds the rest to a study"
        )
    return contents


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a log's file with its number. Raises LogError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            yield from enumerate(file, 1)
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}; check its permissions and its disk") from error


def parse_entry(line: dict[str, Any], file: str, number: int) -> Entry:
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


def _find_erasure_faults(entries: list[Entry], erased: set[int]) -> list[Fault]:
    """Find bodies that are missing without a tombstone, and bodies that one names, which are one fault together."""
    faults = [
        Fault(file=entry.file, line=entry.line, what="its body is gone, and no tombstone says why")
        for entry in entries
        if entry.record is None and entry.seq not in erased
    ]
    if unerased := [entry for entry in entries if entry.record is not None and entry.seq in erased]:
        first = unerased[0]
        problem = f"entry {first.seq} was to be erased and is still there"
        if len(unerased) > 1:
            problem = f"{len(unerased)} entries were to be erased and are still there, the first is {first.seq}"
        remedy = f"run {PROGRAM} study withdraw again"
        faults.append(Fault(file=first.file, line=first.line, what=f"{problem}: {remedy}", harmless=True))
    return faults
