"""Import into a study: files find their sessions, nothing is half imported, and revisions keep what was before."""

import json
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Polarity, Verdict
from norm_core.runtime.time import NS_PER_S, ReplayClock
from sim_replays.examples.study_session import START_NS, write_log
from study_desk.coding.forms.sheet import FormError
from study_desk.coding.labels import by_coder
from study_desk.log.reader import read, read_sound
from study_desk.log.recording import open_recording
from study_desk.log.schema import Coding, Label, Review
from study_desk.log.writer import StudyLog
from study_desk.privacy.redact import NamesToRemove, Redactor
from study_desk.report.report import page_data
from study_desk.study.add_session import add_log, set_consent
from study_desk.study.import_coding import ImportOptions, PlannedImport, plan_for_study, retract_coding, write_additions
from study_desk.study.status import study_status
from study_desk.study.study_folder import Study, StudyError, init_study

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


def test_each_row_finds_its_session(study: Study, tmp_path: Path) -> None:
    coded = table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", "S10,C-1,error,engagement,3,4",
        "S10,C-2,error,emotions,5,6")  # fmt: skip
    write(study, coded)
    assert (labels(study, "S1"), labels(study, "S10"), labels(study, "S10", "C-2")) == ([1], [3], [5])
    again = write(study, coded)
    assert not any(addition.entries for addition in again.additions)


def test_the_same_file_with_a_name_in_a_comment_is_nothing_new(study: Study, tmp_path: Path) -> None:
    coded = tmp_path / "a.csv"
    coded.write_text(f"{HEADER.strip()},comment\nS1,C-1,error,engagement,1,2,he waited for Ana\n")
    names = NamesToRemove(by_name=(("Ana", "P-7K3MX"),))
    write(study, coded, redactor=Redactor(names=names))
    (label,) = [x for x in open_recording(study.log_of("S1")).labels if x.coder == "C-1"]
    assert label.comment == "he waited for P-7K3MX"
    again = write(study, coded, redactor=Redactor(names=names))
    assert not any(addition.entries for addition in again.additions)


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


def test_unknown_sessions_are_left_out_with_a_count_when_asked(study: Study, tmp_path: Path) -> None:
    coded = table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", "S3,C-1,error,engagement,3,4")
    planned = write(study, coded, skip_unknown=True)
    assert planned.skipped == (f"{coded}: S3",)
    assert labels(study, "S1") == [1]


def test_the_name_of_a_file_tells_session_and_coder(study: Study, tmp_path: Path) -> None:
    for name in ("S10_C-2", "coder C-1 S1"):
        (tmp_path / f"{name}.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    write(study, tmp_path / "S10_C-2.csv", tmp_path / "coder C-1 S1.csv")
    assert (labels(study, "S10", "C-2"), labels(study, "S1", "C-1")) == ([7], [7])
    (tmp_path / "S1 S2 C-1.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    with pytest.raises(StudyError, match=r"S1 S2 C-1\.csv: no session"):
        write(study, tmp_path / "S1 S2 C-1.csv")


def test_two_files_of_one_coding_are_refused(study: Study, tmp_path: Path) -> None:
    files = [table(tmp_path / f"{n}.csv", f"S1,C-1,error,engagement,{n},9") for n in (1, 2)]
    with pytest.raises(StudyError, match=r"session S1 is coded by C-1 in .*1\.csv and in .*2\.csv; import one"):
        write(study, *files)


def test_a_form_without_labels_is_no_coding_until_it_is_said(study: Study, tmp_path: Path) -> None:
    empty = tmp_path / "S1_C-1.csv"
    empty.write_text("polarity,attribute,start_s,end_s\n")
    assert write(study, empty).empty == ("S1 (S1_C-1.csv)",)
    assert "C-1" not in open_recording(study.log_of("S1")).coders
    write(study, empty, complete=True)
    assert "C-1" in open_recording(study.log_of("S1")).coders


def test_a_revision_replaces_and_the_log_keeps_what_was(study: Study, tmp_path: Path) -> None:
    first = table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", "S1,C-1,error,emotions,3,4")
    write(study, first, table(tmp_path / "b.csv", "S1,C-2,error,engagement,1,2"))
    better = table(tmp_path / "c.csv", "S1,C-1,error,engagement,1,2")
    with pytest.raises(FormError, match="has a coding by C-1 already"):
        write(study, table(tmp_path / "d.csv", "S1,C-1,error,engagement,8,9"))
    write(study, better, replace=True)
    assert (labels(study, "S1"), labels(study, "S1", "C-2")) == ([1], [1])
    records = [entry.record for entry in read_sound(study.log_of("S1")).entries]
    assert sum(isinstance(each, Label) and each.coder == "C-1" for each in records) == 3
    status = study_status(study, CLOCK).sessions[0]
    assert (status.revised, status.problems) == ({"C-1": 1}, ())
    assert not write(study, better, replace=True).additions[0].entries
    with pytest.raises(StudyError, match="give one of the two"):
        write(study, better, replace=True, add=True)


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
    (conflict,) = study_status(study, CLOCK).sessions[0].conflicts
    assert conflict == f"event {first}: Bo: relabel error emotions major, Cleo: accept"
    shown = page_data(open_recording(log), {}, None, ())["reviews"]
    assert {(each["event_id"], each["reviewer"], each["verdict"]) for each in shown} == {
        (first, "Cleo", "accept"), (second, "Cleo", "reject"), (first, "Bo", "relabel"), (second, "Bo", "reject"),
    }  # fmt: skip


def test_a_coding_of_another_coders_session_is_refused_unless_it_is_said(study: Study, tmp_path: Path) -> None:
    study.set(("sessions", "S1", "coders"), ["C-2"])
    coded = table(tmp_path / "S1_C-1.csv", "S1,C-1,error,engagement,1,2")
    before = heads(study)
    with pytest.raises(StudyError, match=r"assigned to C-2, not to C-1, so nothing .* --coder C-2 .* --unassigned"):
        write(study, coded, table(tmp_path / "b.csv", "S2,C-1,error,engagement,1,2"))
    assert heads(study) == before
    planned = write(study, coded, unassigned=True)
    assert planned.remarks == ("S1 is assigned to C-2, not to C-1",)
    assert labels(study, "S1") == [1]
    assert not write(study, coded).additions[0].entries  # nothing new, so nothing to refuse


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


def test_a_coding_that_found_nothing_can_be_taken_back(study: Study, tmp_path: Path) -> None:
    write(study, table(tmp_path / "S1_C-1.csv"), complete=True)
    assert retract_coding(study.log_of("S1"), "C-1", CLOCK).labels == 0
    assert open_recording(study.log_of("S1")).coders == frozenset()
    with pytest.raises(ValueError, match="labels 0 and replaces"):
        Coding(coder="C-1", labels=0, retracts=True)
