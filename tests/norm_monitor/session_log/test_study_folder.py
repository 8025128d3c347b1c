"""A study's folder: what study.yaml takes and how it is edited, how sessions come into it, and what is told of them."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.reader import LogError
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.schema import Coding, Consent, Participant
from norm_monitor.session_log.study_folder import Study, StudyError, init_study, remove_from_yaml, set_in_yaml
from norm_monitor.session_log.writer import StudyLog, lock_log
from study_desk.analysis.study_tables import tabulate_study
from study_desk.analysis.write_analysis import render_report
from study_desk.study.add_session import add_log, plan_session, set_consent
from study_desk.study.outputs import note_study_output
from study_desk.study.status import SessionStatus, check_study
from study_desk.study.withdrawal import expire_study, withdraw
from tests.study_session import START_NS, info, write_log

CLOCK = ReplayClock(START_NS + 3600 * NS_PER_S)
JOKE = "{id: joke, name: joke, polarity: competence}"
DAY_NS = 86_400 * NS_PER_S
PEOPLE = (Participant(pseudonym="P-1", person_ids=("person_1",)), Participant(pseudonym="P-2"))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = init_study(tmp_path / "study", "library-2026", ["apology", "none"], ["C-1", "C-2"])
    set_consent(study, "P-7K3MX", words=True, coders=True)
    return study


@pytest.fixture
def with_session(study: Study, tmp_path: Path) -> Study:
    write_log(tmp_path / "s1", session="S1", length_s=60, flags=6)
    add_log(study, tmp_path / "s1", CLOCK)
    return study


def edit(study: Study, old: str, new: str) -> Path:
    study.path.write_text(study.path.read_text().replace(old, new))
    return study.folder


def statuses(study: Study, clock: ReplayClock = CLOCK) -> dict[str, SessionStatus]:
    return {session.name: session for session in check_study(Study(study.folder), clock).sessions}


def texts(log: Path) -> str:
    return "".join(path.read_text() for path in log.glob("events-*.jsonl"))


def test_a_new_study_is_readable_by_its_owner_alone(study: Study) -> None:
    assert {path.stat().st_mode & 0o077 for path in [study.folder, *study.folder.rglob("*")]} == {0}
    assert study.file.conditions == ("apology", "none")
    assert "# Participants by pseudonym" in study.path.read_text()
    with pytest.raises(StudyError, match="is there already"):
        init_study(study.folder, "another")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("study: library", "study: [", r"study\.yaml, line \d+, column"),
        ("sessions: {}", "sessions:\n  S1: {}\n  S1: {}", r"line \d+, column \d+: the key 'S1' appears twice"),
        ("sessions: {}", "sessions: {S1: {condition: loud}}", "session S1: unknown condition loud; study.yaml has"),
        ("sessions: {}", "sessions: {S1: {coders: [C-9]}}", "session S1: unknown coder C-9; study.yaml has C-1, C-2"),
        ("sessions: {}", "sessions: {S1: {participants: {P-9: []}}}", "session S1: unknown participant P-9"),
        ("sessions: {}", "sessions: {../S1: {}}", "sessions.../S1"),
        (
            "sessions: {}",
            "sessions: {A: {log: x}, B: {log: x}}",
            "log folder x is given twice: rename one, or delete it$",
        ),
        ("[C-1, C-2]", "[C-1, C-1]", "coders: C-1 is given twice: rename one, or delete it$"),
        ("[C-1, C-2]", "[monitor]", "coder monitor: the name is taken"),
        (
            "codes: []",
            "codes: [{id: a, name: a, polarity: error, key: '1'}]",
            "codes: key 1 is given twice: rename one, or delete it$",
        ),
        ("codes: []", f"codes: [{JOKE}, {JOKE}]", "codes: joke is given twice: rename one, or delete it$"),
        ("codes: []", "codes: [{id: a, name: a, polarity: bad}]", "codes.0.polarity"),
        ("seed: 0", "sed: 0", "did you mean seed"),
    ],
)
def test_a_faulty_study_file_is_refused_with_its_line(study: Study, old: str, new: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Study(edit(study, old, new))


def test_a_log_is_completed_from_the_study_file(study: Study, tmp_path: Path) -> None:
    with StudyLog.begin(tmp_path / "log", info("S2", condition="", participants=()), CLOCK) as log:
        log.close(sealed=True)
    add_log(study, tmp_path / "log", CLOCK, condition="none")
    edit(study, "S2: {condition: none}", "S2: {condition: none, participants: {P-7K3MX: [person_1]}}")
    taken = Study(study.folder).recording_of("S2").info
    assert taken.condition == "none"
    assert [p.pseudonym for p in taken.participants] == ["P-7K3MX"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"study": "zoo"}, "is a log of study zoo, not of library-2026"),
        ({"condition": "loud"}, "unknown condition loud"),
        ({"participants": PEOPLE[:1]}, "unknown participant P-1"),
        ({"session": "S1"}, "is there already; a session has one log"),
    ],
)
def test_a_log_that_contradicts_the_study_is_not_moved(
    with_session: Study, tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    with StudyLog.begin(tmp_path / "log", info(**{"session": "S9", **changes}), CLOCK) as log:  # type: ignore[arg-type]
        log.close(sealed=True)
    before = with_session.path.read_text()
    with pytest.raises(StudyError, match=told):
        add_log(with_session, tmp_path / "log", CLOCK)
    assert (tmp_path / "log").is_dir()
    assert with_session.path.read_text() == before


def test_a_session_that_contradicts_the_study_is_left_out(with_session: Study) -> None:
    edit(with_session, "S1: {condition: apology", "S1: {condition: none")
    study = Study(with_session.folder)
    disagreement = "its log is of condition apology, and study.yaml says none"
    assert disagreement in statuses(study)["S1"].problems
    with pytest.raises(StudyError, match=disagreement):
        study.recordings()


def test_status_names_missing_damaged_and_foreign_logs(with_session: Study, tmp_path: Path) -> None:
    edit(with_session, "sessions:\n", "sessions:\n  S3: {condition: none}\n")
    write_log(with_session.folder / "sessions/stray", session="S4", length_s=30, flags=1)
    file = with_session.log_of("S1") / "events-000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b"person_1", b"person_2", 1))
    status = check_study(Study(with_session.folder), CLOCK)
    assert {session.name: session.log for session in status.sessions} == {"S1": "damaged", "S3": "missing"}
    assert any("stray: a log that study.yaml does not name" in problem for problem in status.problems)
    assert not status.is_complete


def test_a_coding_without_labels_counts_as_coded(with_session: Study) -> None:
    with StudyLog.resume(with_session.log_of("S1"), CLOCK) as log:
        log.append(Coding(coder="C-2", labels=0), 0)
        log.append(Coding(coder="X", labels=0), 0)
    session = statuses(with_session)["S1"]
    assert (session.coded_by, session.owed_by) == (("C-2", "X"), ("C-1",))
    assert "coded by X, no coder of study.yaml" in session.problems[0]


def test_words_stored_without_consent_are_a_problem(with_session: Study) -> None:
    set_consent(with_session, "P-7K3MX", words=False)
    (problem,) = statuses(with_session)["S1"].problems
    assert "its log keeps words of P-7K3MX, who did not consent" in problem
    withdraw(with_session, "P-7K3MX", [Consent.WORDS], CLOCK)
    assert statuses(with_session)["S1"].problems == ()


def test_everything_withdrawn_empties_logs_and_exports(with_session: Study, tmp_path: Path) -> None:
    made = {name: with_session.folder / "exports" / name for name in ("kept.eaf", "edited.eaf")}
    outside = tmp_path / "outside.csv"
    for file in (*made.values(), outside):
        file.write_text("words")
        note_study_output(with_session, file, "eaf", "S1")
    made["edited.eaf"].write_text("a coder's day")
    done = withdraw(with_session, "P-7K3MX", [Consent.EVERYTHING], CLOCK)
    assert done.outputs.deleted == ("exports/kept.eaf",)
    assert done.outputs.changed == ("exports/edited.eaf",)
    assert done.outputs.outside == (str(outside),)
    assert not done.is_complete
    assert (made["kept.eaf"].exists(), made["edited.eaf"].exists()) == (False, True)
    assert "Good morning" not in texts(with_session.log_of("S1"))
    assert statuses(with_session)["S1"].owed_by == ()
    with pytest.raises(StudyError, match="P-7K3MX withdrew everything"):
        plan_session(with_session, "S5", participants=(Participant(pseudonym="P-7K3MX"),))


def test_a_withdrawal_that_a_damaged_log_stops_stays_owed(with_session: Study, tmp_path: Path) -> None:
    write_log(tmp_path / "s2", session="S2", length_s=30, flags=2)
    add_log(with_session, tmp_path / "s2", CLOCK)
    file = with_session.log_of("S1") / "events-000001.jsonl"
    sound = file.read_bytes()
    file.write_bytes(sound.replace(b"Good", b"Evil", 1))
    done = withdraw(with_session, "P-7K3MX", [Consent.WORDS], CLOCK)
    assert (set(done.faults), set(done.entries)) == ({"S1"}, {"S1", "S2"})
    file.write_bytes(sound)
    problems = statuses(with_session)["S1"].problems
    assert any("P-7K3MX withdrew words, which is not carried out here" in problem for problem in problems)
    assert withdraw(with_session, "P-7K3MX", [Consent.WORDS], CLOCK).is_complete
    assert statuses(with_session)["S1"].problems == ()


def test_a_withdrawal_of_nobody_known_is_refused(with_session: Study) -> None:
    with pytest.raises(StudyError, match=r"unknown participant P-9; study\.yaml has P-7K3MX"):
        withdraw(with_session, "P-9", [Consent.WORDS], CLOCK)


def test_the_shorter_of_two_retention_times_counts(with_session: Study) -> None:
    edit(with_session, "retention_days: 0", "retention_days: 30")
    study = Study(with_session.folder)
    export = study.folder / "exports/S1.csv"
    export.write_text("x")
    note_study_output(study, export, "csv", "S1")
    early, late = ReplayClock(START_NS + 29 * DAY_NS), ReplayClock(START_NS + 30 * DAY_NS)
    assert expire_study(study, early).entries == {"S1": 0}
    assert "its 30 days of retention ended" in statuses(study, late)["S1"].problems[0]
    assert expire_study(study, late).entries["S1"] > 0
    assert not export.exists()
    assert (statuses(study, late)["S1"].log, statuses(study, late)["S1"].problems) == ("emptied", ())


def test_a_damaged_list_of_outputs_is_refused(with_session: Study) -> None:
    (with_session.folder / "outputs.jsonl").write_text(json.dumps({"session": "S1"}) + "\n")
    with pytest.raises(StudyError, match=r"outputs\.jsonl: cannot be read"):
        check_study(with_session, CLOCK)


@pytest.mark.parametrize("lost_line", [0, 3])
def test_a_recovered_log_takes_the_place_of_the_damaged_one(with_session: Study, lost_line: int) -> None:
    log = with_session.log_of("S1")
    lines = (log / "events-000001.jsonl").read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:lost_line], *lines[lost_line + 1 :]])
    (log / "events-000001.jsonl").write_bytes(damaged)
    descriptor = lock_log(log)
    with pytest.raises(LogError, match="another process writes this log"):
        add_log(with_session, log, CLOCK, name="S1")
    os.close(descriptor)
    added = add_log(with_session, log, CLOCK, name="S1")
    assert (added.session, added.damaged, len(added.lost) > 0) == ("S1", f"{log}.damaged", True)
    assert Path(added.damaged, "events-000001.jsonl").read_bytes() == damaged
    assert statuses(with_session)["S1"].log == "intact"
    assert {path.name for path in with_session.folder.iterdir() if path.name.startswith(".rec")} == set()


def test_a_decision_of_another_time_does_not_stretch_its_session(with_session: Study) -> None:
    log = with_session.log_of("S1")
    before = open_recording(log)
    with StudyLog.resume(log, ReplayClock(START_NS)) as writer:
        writer.append(replace(before.decisions[0], decided_ns=1), START_NS)
    after = open_recording(log)
    assert (after.start_ns, after.end_ns) == (before.start_ns, before.end_ns)
    tables = tabulate_study(with_session)
    assert "session S1: 1 time more than a day from the session's others left out" in tables.remarks
    assert render_report(tables)


TEXT = """# ours
study: kiosk  # the name
sessions:
  S1: {condition: a}  # first
  S2:
    condition: b   # second
    media:
      - one.mp4
# people
participants: {}
retention_days:
"""


@pytest.mark.parametrize(
    ("keys", "value", "line"),
    [
        (("sessions", "S3"), {"condition": "a"}, "  S3: {condition: a}"),
        (("sessions", "S2", "bag"), "bags/x", "    bag: bags/x"),
        (("sessions", "S1", "bag"), "b", "  S1: {condition: a, bag: b}  # first"),
        (("participants", "P-1", "words"), False, "  P-1: {words: false}"),
        (("retention_days",), 30, "retention_days: 30"),
        (("seed",), 4, "seed: 4"),
        (("sessions", "S2", "condition"), "no: b", "    condition: 'no: b'   # second"),
    ],
)
def test_setting_a_value_keeps_comments_and_other_lines(keys: tuple[str, ...], value: object, line: str) -> None:
    edited = set_in_yaml(TEXT, keys, value)
    assert line in edited.splitlines()
    comments = ("# ours", "# the name", "# first", "# second", "# people")
    assert all(comment in edited for comment in comments)


@pytest.mark.parametrize(
    ("keys", "gone"),
    [
        (("sessions", "S1"), "  S1: {condition: a}  # first\n"),
        (("sessions", "S2"), "  S2:\n    condition: b   # second\n    media:\n      - one.mp4\n"),
        (("sessions", "S2", "media"), "    media:\n      - one.mp4\n"),
        (("retention_days",), "retention_days:\n"),
    ],
)
def test_removing_a_key_removes_only_its_lines(keys: tuple[str, ...], gone: str) -> None:
    assert remove_from_yaml(TEXT, keys) == TEXT.replace(gone, "")


def test_the_last_key_leaves_an_empty_mapping() -> None:
    for text in ("a: {b: 1}  # x\nc: 2\n", "a:\n  b: 1\n# x\nc: 2\n"):
        left = remove_from_yaml(text, ("a", "b"))
        assert (yaml.safe_load(left), "# x" in left) == ({"a": {}, "c": 2}, True)


KEYS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4)
PLAIN = st.recursive(
    st.integers() | st.booleans() | KEYS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(KEYS, PLAIN, min_size=1, max_size=4), st.lists(KEYS, min_size=1, max_size=3), PLAIN)
@settings(max_examples=200, deadline=None)
def test_an_edit_sets_that_value_and_no_other(plain: dict[str, object], keys: list[str], value: object) -> None:
    text = yaml.safe_dump(plain, allow_unicode=True)
    edited = yaml.safe_load(set_in_yaml(text, tuple(keys), value))
    untouched = {key: inner for key, inner in plain.items() if key != keys[0]}
    assert {key: inner for key, inner in edited.items() if key != keys[0]} == untouched
    for key in keys:
        edited = edited[key]
    assert edited == value


def test_a_text_that_cannot_be_edited_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the file, line 1, column 36: the alias \*same is not allowed"):
        set_in_yaml("sessions: {S1: &same {bag: a}, S2: *same}\n", ("sessions", "S2", "bag"), "b")
    with pytest.raises(ConfigError, match=r"the file: holds no keys"):
        set_in_yaml("- S1\n", ("sessions",), {})
