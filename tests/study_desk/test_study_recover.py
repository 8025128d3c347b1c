"""What is saved of a damaged log: each line that is what its hash says, and a word on all that is not there."""

from pathlib import Path

import pytest

from norm_core.runtime.time import ReplayClock
from study_desk.log.reader import LogError, read
from study_desk.log.recording import open_recording
from study_desk.log.schema import Recovered, Tombstone
from study_desk.log.writer import StudyLog, recover_log
from tests.study_session import START_NS, write_log


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
