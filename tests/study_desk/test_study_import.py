"""Import into a study: files find their sessions, nothing is half imported, and revisions keep what was before."""

import json
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Polarity, Verdict
from norm_core.runtime.time import NS_PER_S, ReplayClock
from study_desk.coding.forms.sheet import FormError
from study_desk.coding.labels import by_coder
from study_desk.log.reader import read, read_sound
from study_desk.log.recording import open_recording
from study_desk.log.schema import Coding, Label, Review
from study_desk.log.writer import StudyLog
from study_desk.report.review_server import page_data
from study_desk.study.add_session import add_log, set_consent
from study_desk.study.import_coding import ImportOptions, PlannedImport, plan_for_study, retract_coding, write_additions
from study_desk.study.status import study_status
from study_desk.study.study_folder import Study, StudyError, init_study
from tests.study_session import START_NS, write_log

CLOCK = ReplayClock(START_NS + 3600 * NS_PER_S)
HEADER = "session,coder,polarity,attribute,start_s,end_s\n"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = init_study(tmp_path / "study", "library-2026", [], ["C-1", "C-2"])
    set_consent(study, "P-7K3MX", clips=True)
    for name in ("S1", "S2", "S10"):
        write_log(tmp_path / name, session=name, length_s=60, flags=3)
        add_log(study, tmp_path / name, CLOCK)
    return study


def write(study: Study, *files: Path, **options: Any) -> PlannedImport:
    chosen = ImportOptions(**options)
    planned = plan_for_study(study, files, chosen)
    write_additions(planned.additions, CLOCK, chosen.redactor)
    return planned


def labels(study: Study, session: str, coder: str = "C-1") -> list[float]:
    """Say at which seconds the labels of a coder start."""
    recording = open_recording(study.log_of(session))
    return [(x.start_ns - recording.start_ns) / NS_PER_S for x in recording.labels if x.coder == coder]


def heads(study: Study) -> dict[str, str]:
    return {name: read(log).head for name, log in study.logs()}


def table(path: Path, *rows: str) -> Path:
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("S3,C-1,error,engagement,3,4", r"nothing is imported, as study.yaml has no such session: .*: S3\. It has S1"),
        ("S2,C-9,error,engagement,3,4", "unknown coder C-9"),
        ("S2,C-1,error,mood,3,4", "line 3: 'error mood' is no code"),
        ("S2,C-1,error,engagement,3,400", "1 of 1 labels lie outside the session, which is from 0 to 60.0 s: .*line 3"),
        ("S2,C-1,error,engagement,30500,31500", r"line 3: 30500.0 to 31500.0 s. Are these milliseconds\?"),
        ("S1,C-1,error,engagement,1,2", "stands twice: .*a.csv, line 3 repeats .*a.csv, line 2"),
        ("S2,C-1,error,engagement,5,4", "line 3: a label ends at 4 s"),
        ("S2,,error,engagement,3,4", "line 3: names no coder"),
        ("S2,monitor,error,engagement,3,4", "monitor is no coder"),
        ("S2,consensus,error,engagement,3,4", "consensus is no coder"),
    ],
)
def test_one_faulty_row_keeps_all_out(study: Study, tmp_path: Path, row: str, told: str) -> None:
    before = heads(study)
    with pytest.raises((StudyError, FormError), match=told):
        write(study, table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", row))
    assert heads(study) == before


def test_a_coder_who_was_not_assigned_is_refused_unless_that_is_allowed(study: Study, tmp_path: Path) -> None:
    study.set(("sessions", "S1", "coders"), ["C-2"])
    coded = table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2")
    with pytest.raises(StudyError, match=r"S1 is assigned to C-2, not to C-1, so nothing is imported.*--unassigned"):
        write(study, coded)
    assert write(study, coded, unassigned=True).remarks == ("S1 is assigned to C-2, not to C-1",)
    assert labels(study, "S1") == [1]


def test_the_name_of_a_file_tells_session_and_coder(study: Study, tmp_path: Path) -> None:
    for name in ("S10_C-2", "coder C-1 S1"):
        (tmp_path / f"{name}.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    write(study, tmp_path / "S10_C-2.csv", tmp_path / "coder C-1 S1.csv")
    assert (labels(study, "S10", "C-2"), labels(study, "S1", "C-1")) == ([7], [7])
    (tmp_path / "S1 S2 C-1.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    with pytest.raises(StudyError, match=r"S1 S2 C-1\.csv: no session"):
        write(study, tmp_path / "S1 S2 C-1.csv")


def test_a_revision_that_was_cut_off_is_told(study: Study) -> None:
    with StudyLog.resume(study.log_of("S1"), CLOCK) as log:
        log.append(Coding(coder="C-1", labels=2, replaces=True), START_NS)
        log.append(
            Label(start_ns=START_NS, end_ns=START_NS, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS,
                coder="C-1"),
            START_NS,
        )  # fmt: skip
    (problem,) = study_status(study, CLOCK).sessions[0].problems
    assert problem == "the revised coding by C-1 has 1 of 2 labels: import it again with --replace"


def test_a_log_that_is_being_written_keeps_all_out(study: Study, tmp_path: Path) -> None:
    coded = table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", "S2,C-1,error,engagement,3,4")
    before = heads(study)
    with StudyLog.resume(study.log_of("S2"), CLOCK), pytest.raises(ValueError, match="another process writes this log"):
        write(study, coded)
    assert heads(study) == before


def test_reviewers_who_disagree_are_both_shown(study: Study, tmp_path: Path) -> None:
    log = study.log_of("S1")
    first, second, *_ = [flag.event_id for flag in open_recording(log).flags]
    given = [
        Review(event_id=first, reviewer="Cleo", verdict=Verdict.ACCEPT),
        Review(event_id=second, reviewer="Cleo", verdict=Verdict.REJECT),
    ]
    with StudyLog.resume(log, CLOCK) as writer:
        for review in given:
            writer.append(review, START_NS)
    relabelled = {"verdict": "relabel", "polarity": "error", "attributes": ["emotions"], "severity": "major"}
    rejected = {"verdict": "reject"}
    others = [{"event_id": first, "reviewer": "Bo", **relabelled}, {"event_id": second, "reviewer": "Bo", **rejected}]
    (tmp_path / "bo.json").write_text(json.dumps({"session": "S1", "reviews": others}))
    write(study, tmp_path / "bo.json")
    shown = page_data(open_recording(log), None)["reviews"]
    assert {(each["event_id"], each["reviewer"], each["verdict"]) for each in shown} == {
        (first, "Cleo", "accept"), (second, "Cleo", "reject"), (first, "Bo", "relabel"), (second, "Bo", "reject"),
    }  # fmt: skip


def test_a_coding_that_is_taken_back_no_longer_counts_and_stays_in_the_log(study: Study, tmp_path: Path) -> None:
    log, coded = study.log_of("S1"), table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2")
    write(study, coded, table(tmp_path / "b.csv", "S1,C-2,error,engagement,5,6"), complete=True)
    found = retract_coding(log, "C-1", CLOCK)
    assert (found.session, found.labels, found.head) == ("S1", 1, read_sound(log).head)
    status = study_status(study, CLOCK).sessions[0]
    assert (status.coded_by, status.owed_by, status.revised, status.problems) == (("C-2",), ("C-1",), {}, ())
    assert "C-1" not in by_coder(open_recording(log))
    assert (labels(study, "S1"), labels(study, "S1", "C-2")) == ([], [5])
    kept = [entry.record for entry in read_sound(log).entries]
    assert sum(isinstance(each, Label) and each.coder == "C-1" for each in kept) == 1
    with pytest.raises(StudyError, match="has no coding by C-1; it has those of C-2"):
        retract_coding(log, "C-1", CLOCK)
    write(study, coded)
    assert labels(study, "S1") == [1]
