"""Who codes what, and imports: files find their sessions, nothing is half imported, revisions keep what was before."""

from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.reader import read, read_sound
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Coding, Label
from norm_monitor.session_log.study_folder import Study, StudyError, init_study
from norm_monitor.session_log.writer import StudyLog
from study_desk.coding.forms.sheet import FormError
from study_desk.coding.labels import collect_by_coder
from study_desk.study.add_session import add_log, set_consent
from study_desk.study.import_coding import ImportOptions, PlannedImport, plan_for_study, retract_coding, write_additions
from study_desk.study.status import check_study
from tests.study_session import START_NS, write_log

CLOCK = ReplayClock(START_NS + 3600 * NS_PER_S)
HEADER = "session,coder,polarity,attribute,start_s,end_s\n"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = init_study(tmp_path / "study", "library-2026", [], ["C-1", "C-2"])
    set_consent(study, "P-7K3MX", words=True)
    for name in ("S1", "S2", "S10"):
        write_log(tmp_path / name, session=name, length_s=60, flags=3)
        add_log(study, tmp_path / name, CLOCK)
    return study


def import_files(study: Study, *files: Path, **options: Any) -> PlannedImport:
    chosen = ImportOptions(**options)
    planned = plan_for_study(study, files, chosen)
    write_additions(planned.additions, CLOCK, chosen.redactor)
    return planned


def list_onsets_s(study: Study, session: str, coder: str = "C-1") -> list[float]:
    """Say at which seconds the labels of a coder start."""
    recording = open_recording(study.log_of(session))
    return [(x.start_ns - recording.start_ns) / NS_PER_S for x in recording.labels if x.coder == coder]


def read_heads(study: Study) -> dict[str, str]:
    return {name: read(log).head for name, log in study.logs()}


def write_table(path: Path, *rows: str) -> Path:
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("S3,C-1,error,engagement,3,4", r"nothing is imported, as study.yaml has no such session: .*: S3\. It has S1"),
        ("S2,C-9,error,engagement,3,4", "unknown coder C-9"),
        ("S2,C-1,error,mood,3,4", "line 3: 'error mood' is not a code"),
        ("S2,C-1,error,engagement,3,400", "1 of 1 labels lie outside the session, which is from 0 to 60.0 s: .*line 3"),
        ("S2,C-1,error,engagement,30500,31500", r"line 3: 30500.0 to 31500.0 s. Are these milliseconds\?"),
        ("S1,C-1,error,engagement,1,2", "appears twice: .*a.csv, line 3 repeats .*a.csv, line 2"),
        ("S2,C-1,error,engagement,5,4", "line 3: a label ends at 4 s"),
        ("S2,,error,engagement,3,4", "line 3: names no coder"),
        ("S2,monitor,error,engagement,3,4", "monitor is not a coder"),
    ],
)
def test_a_faulty_row_keeps_all_rows_out(study: Study, tmp_path: Path, row: str, problem: str) -> None:
    before = read_heads(study)
    with pytest.raises((StudyError, FormError), match=problem):
        import_files(study, write_table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", row))
    assert read_heads(study) == before


def test_labels_outside_the_session_are_refused_unless_accepted(study: Study, tmp_path: Path) -> None:
    rows = [f"S1,C-1,error,engagement,{start_s},{start_s + 1}" for start_s in (9000, -5, 6)]
    coded = write_table(tmp_path / "a.csv", *rows)
    with pytest.raises(FormError, match=r"2 of 3 labels lie outside .*line 2: 9000.0 to 9001.0 s; .*line 3: -5.0 to"):
        import_files(study, coded)
    import_files(study, coded, outside=True)
    assert len(list_onsets_s(study, "S1")) == 3


def test_an_unassigned_coder_is_refused(study: Study, tmp_path: Path) -> None:
    study.set(("sessions", "S1", "coders"), ["C-2"])
    coded = write_table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2")
    with pytest.raises(
        StudyError, match=r"S1 is assigned to C-2, not to C-1, so nothing is imported.*or add the coder"
    ):
        import_files(study, coded)


def test_a_file_name_gives_session_and_coder(study: Study, tmp_path: Path) -> None:
    for name in ("S10_C-2", "coder C-1 S1"):
        (tmp_path / f"{name}.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    import_files(study, tmp_path / "S10_C-2.csv", tmp_path / "coder C-1 S1.csv")
    assert (list_onsets_s(study, "S10", "C-2"), list_onsets_s(study, "S1", "C-1")) == ([7], [7])
    (tmp_path / "S1 S2 C-1.csv").write_text("polarity,attribute,start_s,end_s\nerror,engagement,7,8\n")
    with pytest.raises(StudyError, match=r"S1 S2 C-1\.csv: no session"):
        import_files(study, tmp_path / "S1 S2 C-1.csv")


def test_status_reports_an_incomplete_revision(study: Study) -> None:
    with StudyLog.resume(study.log_of("S1"), CLOCK) as log:
        log.append(Coding(coder="C-1", labels=2, replaces=True), START_NS)
        log.append(
            Label(start_ns=START_NS, end_ns=START_NS, polarity=Polarity.ERROR, attribute=Attribute.EMOTIONS,
                coder="C-1"),
            START_NS,
        )  # fmt: skip
    (problem,) = check_study(study, CLOCK).sessions[0].problems
    assert problem == "the revised coding by C-1 has 1 of 2 labels: import it again with --replace"


def test_a_locked_log_keeps_all_files_out(study: Study, tmp_path: Path) -> None:
    coded = write_table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2", "S2,C-1,error,engagement,3,4")
    before = read_heads(study)
    with StudyLog.resume(study.log_of("S2"), CLOCK), pytest.raises(ValueError, match="another process writes this log"):
        import_files(study, coded)
    assert read_heads(study) == before


def test_a_retracted_coding_stays_in_the_log_and_does_not_count(study: Study, tmp_path: Path) -> None:
    log, coded = study.log_of("S1"), write_table(tmp_path / "a.csv", "S1,C-1,error,engagement,1,2")
    import_files(study, coded, write_table(tmp_path / "b.csv", "S1,C-2,error,engagement,5,6"), complete=True)
    retraction = retract_coding(log, "C-1", CLOCK)
    assert (retraction.session, retraction.labels, retraction.head) == ("S1", 1, read_sound(log).head)
    status = check_study(study, CLOCK).sessions[0]
    assert (status.coded_by, status.owed_by, status.revised, status.problems) == (("C-2",), ("C-1",), {}, ())
    assert "C-1" not in collect_by_coder(open_recording(log))
    assert (list_onsets_s(study, "S1"), list_onsets_s(study, "S1", "C-2")) == ([], [5])
    logged = [entry.record for entry in read_sound(log).entries]
    assert sum(isinstance(record, Label) and record.coder == "C-1" for record in logged) == 1
    with pytest.raises(StudyError, match="has no coding by C-1; it has those of C-2"):
        retract_coding(log, "C-1", CLOCK)
    import_files(study, coded)
    assert list_onsets_s(study, "S1") == [1]
