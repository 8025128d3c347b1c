"""The log of a running session: it never delays the monitor, and loses no record that it accepted."""

import errno
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.presence import Face, Presence, PresenceState
from norm_core.records.speech import Speaker, Utterance, make_silence_mark
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log import live_log
from norm_monitor.session_log.live_log import LiveLog, RecordFilter
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Recovered
from norm_monitor.session_log.writer import StudyLog
from tests.patience import PATIENCE_S
from tests.study_session import START_NS, info


def said(number: int) -> Utterance:
    at_ns = START_NS + number
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{number}", speaker=Speaker.ROBOT, text="hello", start_ns=at_ns, end_ns=at_ns + 1
    )


def opener(folder: Path, write: Callable[[int, bytes], int] = os.write) -> Callable[[], StudyLog]:
    return lambda: StudyLog.begin_or_resume(folder, info(), ReplayClock(START_NS), write=write)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


class Disk:
    """Takes bytes while there is room."""

    full = False

    def write(self, descriptor: int, data: bytes) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)


def test_records_are_written_once_a_full_disk_has_room(tmp_path: Path) -> None:
    disk, health_log = Disk(), HealthLog()
    log = LiveLog(opener(tmp_path / "log", disk.write), health_log, retry_s=0.01)
    log.put(said(0), START_NS)
    assert log.flush(PATIENCE_S)
    disk.full = True
    for number in range(1, 5):
        assert log.put(said(number), START_NS)
    assert not log.flush(PATIENCE_S)
    health_when_full = health_log.health
    assert health_when_full is Health.DEGRADED
    assert "No space left on device" in health_log.reasons[0]
    assert "make room" in health_log.reasons[0]
    disk.full = False
    wait_until(lambda: log.flush(0.05))
    log.close()
    assert health_log.health is Health.OK
    assert [e.record.utterance_id for e in read(tmp_path / "log").entries[1:-1]] == [f"u{n}" for n in range(5)]


@pytest.mark.parametrize("how", ["removed", "a file in its place", "moved away and back", "its file removed"])
def test_a_removed_log_is_begun_anew_and_states_its_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(live_log, "CHECK_S", 0.01)
    folder, health_log, moving = tmp_path / "log", HealthLog(), Lock()

    def open_between_moves() -> StudyLog:
        with moving:
            return opener(folder)()

    log = LiveLog(open_between_moves, health_log, retry_s=0.01)
    for number in range(3):
        log.put(said(number), START_NS)
    assert log.flush(PATIENCE_S)
    with moving:
        if how == "its file removed":
            for path in folder.glob("events-*"):
                path.unlink()
        else:
            folder.rename(tmp_path / "away")
        if how in {"a file in its place", "moved away and back"}:
            folder.write_text("in the way")
    if how in {"a file in its place", "moved away and back"}:
        wait_until(lambda: any("cannot be made" in reason for reason in health_log.reasons))  # though nobody speaks
        log.put(said(3), START_NS)
        assert not log.flush(PATIENCE_S)
        with moving:
            folder.unlink()
            if how == "moved away and back":
                (tmp_path / "away").rename(folder)
    wait_until(lambda: health_log.has_issue("study_log_gap") or how == "moved away and back")
    log.put(said(4), START_NS)
    wait_until(lambda: log.flush(0.05))
    log.close()
    contents = read(folder)
    loss = "3 records written before the log's folder or file was removed or replaced"
    ids = [e.record.utterance_id for e in contents.entries if isinstance(e.record, Utterance)]
    assert (contents.faults, contents.sealed) == ((), True)
    if how == "moved away and back":
        assert (ids, health_log.reasons) == (["u0", "u1", "u2", "u3", "u4"], ())
        return
    assert ids == (["u3", "u4"] if how == "a file in its place" else ["u4"])
    assert [e.record.lost for e in contents.entries if isinstance(e.record, Recovered)] == [(loss,)]
    assert health_log.reasons == (f"study log: {folder} lacks {loss}",)
    assert {c.name: c.count for c in health_log.counters}["study_log_lost"] == 3
    assert any("is not whole" in note for note in open_recording(folder).notes)


def test_records_that_a_full_queue_refused_are_counted_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_log, "MAX_QUEUED", 2)
    disk, health_log = Disk(), HealthLog()
    log = LiveLog(opener(tmp_path / "log", disk.write), health_log, retry_s=0.01)
    assert log.flush(PATIENCE_S)
    disk.full = True
    accepted = [log.put(said(number), START_NS) for number in range(20)]
    wait_until(lambda: health_log.health is Health.DEGRADED)
    disk.full = False
    wait_until(lambda: log.flush(0.05) and health_log.has_issue("study_log_gap"))
    log.close()
    (lost,) = [e.record.lost for e in read(tmp_path / "log").entries if isinstance(e.record, Recovered)]
    assert lost == (f"{accepted.count(False)} records refused, as 2 already waited for the disk",)


@pytest.mark.parametrize("what", ["a file in the way", "another session's log", "another writer"])
def test_a_folder_that_cannot_be_written_is_reported_without_a_wait(tmp_path: Path, what: str) -> None:
    folder, health_log = tmp_path / "log", HealthLog()
    other: StudyLog | None = None
    if what == "a file in the way":
        folder.write_text("mine")
    else:
        other = StudyLog.begin(folder, info("S08" if "session" in what else "S07"), ReplayClock(START_NS))
        if "session" in what:
            other.close()
    log = LiveLog(opener(folder), health_log, retry_s=0.01)
    wait_until(lambda: health_log.health is Health.DEGRADED)
    assert log.put(said(1), START_NS)
    assert not log.flush(PATIENCE_S)
    expected = {
        "a file in the way": "cannot be made",
        "another session's log": "is the log of study library-2026, session S08; give this session a folder of its own",
        "another writer": "another process writes this log",
    }
    assert expected[what] in health_log.reasons[0]
    log.close()
    assert {c.name: c.count for c in health_log.counters}["study_log_lost"] == 1
    if other:
        other.close()


def test_a_log_without_a_complete_entry_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/events-000001.jsonl").write_bytes(b'{"schema": 5, "se')
    with StudyLog.begin_or_resume(tmp_path / "log", info(), ReplayClock(START_NS)) as log:
        log.append(said(1), START_NS)
    assert len(read(tmp_path / "log").entries) == 2


def test_a_record_that_cannot_be_encoded_is_counted_and_the_next_is_written(tmp_path: Path) -> None:
    health_log = HealthLog()
    log = LiveLog(opener(tmp_path / "log"), health_log)
    log.put(replace(said(1), text="\ud800"), START_NS)
    log.put(said(2), START_NS)
    assert log.flush(PATIENCE_S)
    log.close()
    assert {c.name: c.count for c in health_log.counters}["study_log_refused"] == 1
    assert [e.record.utterance_id for e in read(tmp_path / "log").entries[1:-1]] == ["u2"]


def test_the_filter_accepts_final_words_and_changed_presence() -> None:
    def seen(at_s: float, *, away: bool) -> Presence:
        face = Face(
            left_ratio=0, top_ratio=0, width_ratio=1, height_ratio=1, confidence=1, yaw_deg=at_s, looking_away=away
        )
        return Presence(stamp_ns=int(at_s * NS_PER_S), source_topic="/c", state=PresenceState.PRESENT, faces=(face,))

    record_filter = RecordFilter()
    presences = [seen(at_s, away=away) for at_s, away in ((0, False), (0.1, False), (0.2, True), (1.3, True))]
    assert [record_filter.accepts(presence) for presence in presences] == [True, False, True, True]
    words = (said(1), replace(said(1), final=False), make_silence_mark(3, "/m"))
    assert [record_filter.accepts(utterance) for utterance in words] == [True, False, False]
