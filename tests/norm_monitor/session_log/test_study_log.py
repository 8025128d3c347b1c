"""The log: a chain that shows every change, a writer that loses at most its last entry, and what a recovery saves."""

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


def small_log(folder: Path, number: int = 5, **settings: object) -> Path:
    with StudyLog.begin(folder, info(), ReplayClock(START_NS), **settings) as log:
        for index in range(number):
            log.append(said(index), START_NS + index)
    return folder


def test_a_log_gives_back_what_was_written(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    contents = read(tmp_path / "log")
    assert contents.faults == ()
    assert contents.sealed
    written = [record for _, record in records()]
    assert [e.record for e in contents.entries[1:-1]] == written
    assert contents.entries[0].record == info(end_ns=contents.entries[0].record.end_ns)


@pytest.mark.parametrize("line", [1, 3, 6])
def test_a_changed_line_is_found_where_it_is(tmp_path: Path, line: int) -> None:
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


def test_a_line_removed_or_moved_is_found_where_it_was(tmp_path: Path) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert [fault.line for fault in read(tmp_path / "log").faults] == [3]
    file.write_bytes(b"".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    assert [fault.line for fault in read(tmp_path / "log").faults] == [3, 4, 5]


def test_a_body_that_is_gone_needs_a_tombstone(tmp_path: Path) -> None:
    file = small_log(tmp_path / "log") / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    plain = json.loads(lines[2])
    del plain["body"]
    file.write_bytes(b"".join([*lines[:2], json.dumps(plain).encode() + b"\n", *lines[3:]]))
    assert [(f.line, f.what) for f in read(tmp_path / "log").faults] == [
        (3, "its body is gone, and no tombstone says why")
    ]


def test_files_rotate_and_the_chain_goes_through_them(tmp_path: Path) -> None:
    folder = small_log(tmp_path / "log", 20, rotate_bytes=2500)
    files = sorted(folder.glob("events-*.jsonl"))
    assert len(files) > 2
    assert all(file.stat().st_size <= 2500 for file in files)
    assert read(folder).faults == ()
    files[1].unlink()
    assert read(folder).faults[0].file == files[2].name


def test_a_torn_entry_is_set_aside_and_said(tmp_path: Path) -> None:
    folder = small_log(tmp_path / "log")
    file = folder / "events-000001.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    assert [f.what.split(":")[0] for f in read(folder).faults] == ["is cut short"]
    assert "cut short by a crash" in " ".join(open_recording(folder).notes)
    with StudyLog.resume(folder, ReplayClock(START_NS)) as log:
        log.append(said(9), START_NS)
    contents = read(folder)
    assert contents.faults == ()
    torn = len(whole.splitlines(keepends=True)[-1]) - 30
    assert [e.record for e in contents.entries if e.kind is Kind.RECOVERED] == [Recovered(torn_bytes=torn)]
    assert len((folder / "events-000001.torn").read_bytes()) == torn


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    log = StudyLog.begin(tmp_path / "log", info(), ReplayClock(START_NS))
    log.append(said(0), START_NS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / "log/events-000001.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, hard))  # room for a part of the next line
    try:
        for index in (1, 2):
            with pytest.raises(LogWriteError, match=r"entry 2 could not be written .*: make room"):
                log.append(said(index), START_NS)
            assert log.pending_count == index
        assert read(tmp_path / "log").faults == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(said(3), START_NS)
    log.close()
    contents = read(tmp_path / "log")
    assert contents.faults == ()
    assert [e.record.utterance_id for e in contents.entries[1:]] == ["u0", "u1", "u2", "u3"]


@pytest.mark.parametrize("schema", [4, 9])
def test_another_schema_is_refused_by_its_number(tmp_path: Path, schema: int) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"schema": {schema}}}\n')
    assert f"has the schema {schema}" in read(tmp_path / "log.jsonl").faults[0].what


def test_a_log_cut_to_nothing_is_not_sound(tmp_path: Path) -> None:
    (tmp_path / "events-000001.jsonl").write_bytes(b"")
    assert "holds no entry" in read(tmp_path).faults[0].what


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


def lines_of(log: Path) -> list[bytes]:
    return (log / "events-000001.jsonl").read_bytes().splitlines(keepends=True)


def damage(log: Path, lines: list[bytes]) -> None:
    (log / "events-000001.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize("number", [3, 9])
@pytest.mark.parametrize("how", ["changed", "no JSON", "removed"])
def test_all_but_the_damaged_line_are_saved(log: Path, tmp_path: Path, how: str, number: int) -> None:
    before, lines = read(log), lines_of(log)
    there = {"changed": [lines[number].replace(b'"ros_ns":1', b'"ros_ns":2')], "no JSON": [b"\xff\n"], "removed": []}
    damage(log, [*lines[:number], *there[how], *lines[number + 1 :]])
    done = recover_log(log, tmp_path / "new")
    assert len(done.lost) == 1
    after = read(tmp_path / "new")
    kept = [e.record for e in before.entries[1:-1] if e.seq != number]
    assert [e.record for e in after.entries[1:-2]] == kept
    assert (after.faults, after.sealed, done.entries) == ((), True, len(after.entries))
    assert after.entries[-2].record == Recovered(torn_bytes=0, lost=done.lost)
    assert open_recording(tmp_path / "new").info.migrated_from == read(log).head
    assert after.entries[5].wall_ns in {e.wall_ns for e in before.entries}


def test_a_lost_session_is_said_and_the_rest_is_read(log: Path, tmp_path: Path) -> None:
    damage(log, [b"{}\n", *lines_of(log)[1:]])
    done = recover_log(log, tmp_path / "new")
    assert "the entry that names the session and its participants" in done.lost
    assert len(open_recording(tmp_path / "new").flags) == 4


def test_what_was_to_be_erased_is_not_saved(log: Path, tmp_path: Path) -> None:
    said = next(e for e in read(log).entries if e.kind == "utterance")
    with StudyLog.resume(log, ReplayClock(START_NS)) as writer:
        writer.append(Tombstone(participant="P-7K3MX", seqs=(said.seq,), reason="wish"), 0)
    assert recover_log(log, tmp_path / "new").lost == ()
    assert read(tmp_path / "new").faults == ()
    assert said.record.utterance_id not in {u.utterance_id for u in open_recording(tmp_path / "new").utterances}


def test_a_log_without_a_sound_line_cannot_be_recovered(log: Path, tmp_path: Path) -> None:
    damage(log, [b"nothing\n"])
    with pytest.raises(LogError, match="holds no intact line"):
        recover_log(log, tmp_path / "new")
