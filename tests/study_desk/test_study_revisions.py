"""Labels that are revised and removed: readers use the latest, the log keeps all, and drafts are no coding."""

from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.redact import WITHHELD
from norm_monitor.session_log.schema import Coding, Label, LabelRemoval, Participant
from norm_monitor.session_log.writer import StudyLog
from study_desk.study.erase import erase, plan_erasure
from tests.study_session import START_NS, info, label, write_log

CLOCK = ReplayClock(START_NS)


def make_label(coder: str, at_s: int, label_id: str = "", **changes: str) -> Label:
    return replace(label(at_s, coder, label_id=label_id), **changes)  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=2)
    return tmp_path / "log"


def append_records(log: Path, *records: object) -> Recording:
    with StudyLog.resume(log, CLOCK) as writer:
        for record in records:
            writer.append(record, START_NS)
    return open_recording(log)


def list_starts_s(labels: tuple[Label, ...]) -> list[int]:
    return [(label.start_ns - START_NS) // NS_PER_S for label in labels]


def test_the_latest_version_of_a_label_counts(log: Path) -> None:
    recording = append_records(
        log,
        make_label("Ana", 10, "e1"),
        make_label("Ana", 20, "e2"),
        make_label("Bo", 30, "e1"),
        make_label("Ana", 11, "e1"),
        LabelRemoval(coder="Ana", label_id="e2"),
        Coding(coder="Ana", labels=1),
        Coding(coder="Bo", labels=1),
    )
    assert list_starts_s(recording.labels) == [11, 30]
    logged = [e.record for e in read(log).entries if isinstance(e.record, Label)]
    assert list_starts_s(tuple(logged)) == [10, 20, 30, 11]


def test_erasing_a_version_revives_no_older_one(tmp_path: Path) -> None:
    people = (Participant(pseudonym="P-1", person_ids=("p1",)), Participant(pseudonym="P-2", person_ids=("p2",)))
    with StudyLog.begin(tmp_path / "log", info("S1", participants=people), CLOCK) as writer:
        writer.close(sealed=True)
    append_records(
        tmp_path / "log",
        make_label("Ana", 10, "e1"),
        make_label("Ana", 11, "e1", comment="P-1 left"),
        make_label("Ana", 20, "e2"),
        Coding(coder="Ana", labels=2),
    )
    erase(tmp_path / "log", plan_erasure(tmp_path / "log", "P-1"), CLOCK)
    assert list_starts_s(open_recording(tmp_path / "log").labels) == [20]


def test_withholding_an_older_version_keeps_the_latest(log: Path) -> None:
    spoken = open_recording(log).utterances[0].text
    append_records(
        log,
        make_label("Ana", 10, "e1", comment=spoken),
        make_label("Ana", 11, "e1", comment="shorter"),
        make_label("Ana", 20, "e2", comment=spoken),
        LabelRemoval(coder="Ana", label_id="e2"),
        make_label("Ana", 30, "e3", comment=spoken),
        Coding(coder="Ana", labels=2),
    )
    erase(log, plan_erasure(log, "P-7K3MX", words_only=True), CLOCK)
    recording = open_recording(log)
    assert [
        (start, label.comment) for start, label in zip(list_starts_s(recording.labels), recording.labels, strict=True)
    ] == [
        (11, "shorter"),
        (30, WITHHELD),
    ]
