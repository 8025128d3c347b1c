"""The log: a chain that shows every change, a writer that loses at most its last entry, and recovery."""

import json
import resource
from pathlib import Path

import pytest

from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import ReplayClock
from norm_monitor.session_log.reader import LogError, read, read_sound
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Kind, Recovered, Tombstone
from norm_monitor.session_log.writer import LogWriteError, StudyLog, recover_log
from tests.study_session import START_NS, info, records, write_log

ROOT = Path(__file__).resolve().parents[3]


def said(number: int, text: str = "hello") -> Utterance:
    at_ns = START_NS + number
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{number}", speaker=Speaker.ROBOT, text=text, start_ns=at_ns, end_ns=at_ns + 1
    )


def small_log(folder: Path) -> Path:
    with StudyLog.begin(folder, info(), ReplayClock(START_NS)) as log:
        for index in range(5):
            log.append(said(index), START_NS + index)
    return folder


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    contents = read(tmp_path / "log")
    assert contents.faults == ()
    assert contents.sealed
    assert [e.record for e in contents.entries[1:-1]] == [record for _, record in records()]
    assert contents.entries[0].record == info(end_ns=contents.entries[0].record.end_ns)


@pytest.mark.parametrize("line", [1, 3, 6])
def test_a_changed_line_is_a_fault_at_its_number(tmp_path: Path, line: int) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b"hello", b"hullo").replace(b"apology", b"control")
    file.write_bytes(b"".join(lines))
    faults = read(tmp_path / "log").faults
    assert [(f.file, f.line) for f in faults] == [("events-000001.jsonl", line)]
    assert "was changed" in faults[0].what
    with pytest.raises(LogError, match=f"events-000001.jsonl:{line} was changed"):
        read_sound(tmp_path / "log")


@pytest.mark.parametrize("field", ["seq", "wall_ns", "ros_ns", "kind", "body_sha256", "prev"])
def test_every_field_of_a_line_is_under_its_hash(tmp_path: Path, field: str) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    plain = json.loads(lines[2])
    plain[field] = 7 if isinstance(plain[field], int) else "0" * 64
    file.write_bytes(b"".join([*lines[:2], json.dumps(plain).encode() + b"\n", *lines[3:]]))
    assert 3 in [fault.line for fault in read(tmp_path / "log").faults]


def test_removed_and_moved_lines_are_faults_at_their_numbers(tmp_path: Path) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert [fault.line for fault in read(tmp_path / "log").faults] == [3]
    file.write_bytes(b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    assert [fault.line for fault in read(tmp_path / "log").faults] == [3, 4, 5]


def test_a_missing_body_without_a_tombstone_is_a_fault(tmp_path: Path) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    plain = json.loads(lines[2])
    del plain["body"]
    file.write_bytes(b"".join([*lines[:2], json.dumps(plain).encode() + b"\n", *lines[3:]]))
    assert [(f.line, f.what) for f in read(tmp_path / "log").faults] == [
        (3, "its body is gone, and no tombstone says why")
    ]


def test_a_torn_entry_is_set_aside_and_logged(tmp_path: Path) -> None:
    folder = small_log(tmp_path / "log")
    file = folder / "events-000001.jsonl"
    data = file.read_bytes()
    file.write_bytes(data[:-30])
    assert [f.what.split(":")[0] for f in read(folder).faults] == ["is cut short"]
    assert "cut short by a crash" in " ".join(open_recording(folder).notes)
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(said(9), START_NS)
    contents = read(folder)
    assert contents.faults == ()
    torn_bytes = len(data.splitlines(keepends=True)[-1]) - 30
    assert [e.record for e in contents.entries if e.kind is Kind.RECOVERED] == [Recovered(torn_bytes=torn_bytes)]
    assert len((folder / "events-000001.torn").read_bytes()) == torn_bytes


def test_a_full_disk_refuses_an_entry_and_leaves_the_log_sound(tmp_path: Path) -> None:
    log = StudyLog.begin(tmp_path / "log", info(), ReplayClock(START_NS))
    log.append(said(0), START_NS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / "log/events-000001.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, hard))  # room for a part of the next line
    try:
        with pytest.raises(LogWriteError, match=r"entry 2 could not be written .*: make room"):
            log.append(said(1), START_NS)
        assert read(tmp_path / "log").faults == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(said(2), START_NS)
    log.close()
    contents = read(tmp_path / "log")
    assert contents.faults == ()
    assert [e.record.utterance_id for e in contents.entries[1:]] == ["u0", "u2"]


@pytest.mark.parametrize("schema", [4, 9])
def test_another_schema_is_a_fault(tmp_path: Path, schema: int) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"schema": {schema}}}\n')
    assert f"has the schema {schema}" in read(tmp_path / "log.jsonl").faults[0].what


def test_an_empty_log_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "events-000001.jsonl").write_bytes(b"")
    assert "holds no entry" in read(tmp_path).faults[0].what


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


def lines_of(log: Path) -> list[bytes]:
    return (log / "events-000001.jsonl").read_bytes().splitlines(keepends=True)


def write_lines(log: Path, lines: list[bytes]) -> None:
    (log / "events-000001.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize("number", [3, 9])
@pytest.mark.parametrize("how", ["changed", "no JSON", "removed"])
def test_recovery_saves_all_but_the_damaged_line(log: Path, tmp_path: Path, how: str, number: int) -> None:
    before, lines = read(log), lines_of(log)
    damaged = {"changed": [lines[number].replace(b'"ros_ns":1', b'"ros_ns":2')], "no JSON": [b"\xff\n"], "removed": []}
    write_lines(log, [*lines[:number], *damaged[how], *lines[number + 1 :]])
    report = recover_log(log, tmp_path / "new")
    assert len(report.lost) == 1
    after = read(tmp_path / "new")
    assert [e.record for e in after.entries[1:-2]] == [e.record for e in before.entries[1:-1] if e.seq != number]
    assert (after.faults, after.sealed, report.entries) == ((), True, len(after.entries))
    assert after.entries[-2].record == Recovered(torn_bytes=0, lost=report.lost)
    assert open_recording(tmp_path / "new").info.migrated_from == read(log).head
    assert after.entries[5].wall_ns in {e.wall_ns for e in before.entries}


def test_recovery_without_the_session_s_entry_saves_the_rest(log: Path, tmp_path: Path) -> None:
    write_lines(log, [b"{}\n", *lines_of(log)[1:]])
    assert "the entry that names the session and its participants" in recover_log(log, tmp_path / "new").lost
    assert len(open_recording(tmp_path / "new").flags) == 4


def test_recovery_leaves_out_erased_entries(log: Path, tmp_path: Path) -> None:
    utterance = next(e for e in read(log).entries if e.kind == "utterance")
    with StudyLog.resume(log, ReplayClock(START_NS)) as writer:
        writer.append(Tombstone(participant="P-7K3MX", seqs=(utterance.seq,), reason="wish"), 0)
    assert recover_log(log, tmp_path / "new").lost == ()
    assert read(tmp_path / "new").faults == ()
    assert utterance.record.utterance_id not in {u.utterance_id for u in open_recording(tmp_path / "new").utterances}


def test_recovery_without_an_intact_line_is_refused(log: Path, tmp_path: Path) -> None:
    write_lines(log, [b"nothing\n"])
    with pytest.raises(LogError, match="holds no intact line"):
        recover_log(log, tmp_path / "new")
