"""`tactful study` as its user calls it: results, errors and exit codes."""

import json
from pathlib import Path

import pytest
import yaml
from rich.table import Table
from typer.testing import CliRunner, Result

from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.records.flag import Attribute
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S, WallClock
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import open_recording
from norm_monitor.session_log.redact import WITHHELD
from norm_monitor.session_log.study_folder import init_study
from norm_monitor.session_log.writer import StudyLog
from study_desk.coding.agreement import Agreement, measure_agreement
from study_desk.coding.labels import CodedSession
from study_desk.verbs.agreement import make_agreement_tables
from tactful_cli.main import app
from tests.command_line import tactful
from tests.study_session import START_NS, label, records, write_log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder, length_s=120, flags=8)
    return folder


@pytest.fixture
def own_log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


def write_wordless_bag(path: Path) -> Path:
    with BagWriter(path) as bag:
        bag.write_message("/words", make("std_msgs/msg/String", {"data": "hi"}), 5)
    return path


def test_status_verifies_a_log(own_log: Path) -> None:
    ended = tactful("study", "status", str(own_log), "--json")
    result = json.loads(ended.stdout)
    assert (ended.returncode, result["sound"], result["sealed"]) == (0, True, True)
    assert tactful("study", "status", str(own_log), "--expect", result["head"]).returncode == 0
    assert tactful("study", "status", str(own_log), "--expect", "0" * 64).returncode == 1
    file = own_log / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"ros_ns":1', b'"ros_ns":2'), *lines[5:]]))
    broken = tactful("study", "status", str(own_log))
    assert broken.returncode == 1
    assert "events-000001.jsonl:5: was changed" in broken.stdout
    refused = tactful("study", "import", str(own_log), "--coder", "C-1", "--complete")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "events-000001.jsonl:5" in refused.stderr


def test_add_recovers_a_damaged_log(own_log: Path, tmp_path: Path) -> None:
    file = own_log / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:4], lines[4].replace(b'"ros_ns":1', b'"ros_ns":2'), *lines[5:]])
    file.write_bytes(damaged)
    study = init_study(tmp_path / "study", "library-2026").folder
    run("participant", study, "P-7K3MX")
    added = tactful("study", "add", str(study), str(own_log))
    assert (added.returncode, added.stdout) == (1, f"{study}/sessions/S07\n")
    remarks = " ".join(added.stderr.split())
    assert "lost: events-000001.jsonl:5 was changed" in remarks
    assert f"{own_log}: was damaged, and stays as it is" in remarks
    assert file.read_bytes() == damaged
    assert tactful("study", "status", str(study / "sessions/S07")).returncode == 0
    ended = tactful("study", "report", str(study))
    assert ended.returncode == 0
    assert "this log is not whole, and lacks" in " ".join(ended.stderr.split())


def test_add_names_the_bag_of_a_log(own_log: Path, tmp_path: Path) -> None:
    bag = write_wordless_bag(tmp_path / "s07_bag")
    printed = CliRunner().invoke(app, ["study", "add", str(own_log), str(bag), "--json"])
    assert json.loads(printed.stdout)["name"] == "s07_bag"
    wrong = CliRunner().invoke(app, ["study", "add", str(own_log), str(bag), "--session", "S1"])
    assert "a log states its session itself" in str(wrong.exception)
    assert read(own_log).faults == ()
    recording = open_recording(own_log)
    assert recording.info.bag
    assert (recording.info.bag.name, recording.info.bag.offset_ns) == ("s07_bag", 5)
    assert len(recording.info.bag.sha256) == 64
    assert not any("not ended properly" in note for note in recording.notes)


def test_add_takes_flags_as_recorded_or_runs_the_monitor(log: Path, tmp_path: Path) -> None:
    recording = open_recording(log)
    with BagWriter(tmp_path / "bag") as bag:
        for utterance in recording.utterances:
            bag.write("/tactful/utterances", utterance, utterance.end_ns)
        bag.write("/tactful/decisions", recording.decisions[0], recording.decisions[0].decided_ns)
        bag.write("/tactful/flags", recording.flags[0], recording.end_ns)
    study = init_study(tmp_path / "a", "a")
    told = {}
    weighed = ("--sensitivity", "keen", "--answer-within", "2.5")
    for option, name in (weighed, "recorded"), (("--watch",), "watched"), (("--watch", *weighed), "weighed"):
        ended = tactful("study", "add", str(study.folder), str(tmp_path / "bag"), "--session", name, *option)
        assert ended.returncode == 0, ended.stderr
        told[name] = ended.stderr
    recorded, weighed_anew = (open_recording(study.folder / "sessions" / name) for name in ("recorded", "weighed"))
    assert (recorded.flags, recorded.info.weighed_by) == (recording.flags[:1], "")
    assert "not used, because the bag's flags are logged" in told["recorded"]
    assert "not used" not in told["weighed"]
    assert weighed_anew.info.weighed_by == "sensitivity keen, answer_within_s 2.5"
    anew = open_recording(study.folder / "sessions/watched")
    assert recording.flags[0].event_id not in {flag.event_id for flag in anew.flags}
    assert len(weighed_anew.flags) > len(anew.flags)
    assert (anew.utterances, anew.decisions) == (recording.utterances, recording.decisions[:1])


@pytest.mark.parametrize("session", ["S/../../evil", "../evil", ".."])
def test_a_session_name_cannot_leave_the_folder(tmp_path: Path, session: str) -> None:
    write_log(tmp_path / "log", session=session, length_s=30, flags=2)
    study = init_study(tmp_path / "study", "library-2026").folder
    run("participant", study, "P-7K3MX")
    assert f"sessions.{session}" in read_refusal("add", study, tmp_path / "log")
    assert (tmp_path / "log/events-000001.jsonl").is_file()


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)], prog_name="tactful")


def read_refusal(*arguments: str | Path) -> str:
    """What the program tells about input that it does not take."""
    ended = run(*arguments)
    assert isinstance(ended.exception, TactfulError), ended.output
    return str(ended.exception)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The speech of a generated session."""
    path = tmp_path_factory.mktemp("bags") / "s1"
    with BagWriter(path) as writer:
        for known_ns, record in records(length_s=60, flags=0):
            if isinstance(record, Utterance):
                writer.write("/tactful/utterances", record, known_ns)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = tmp_path / "zoo"
    run("init", study, "--condition", "quiet", "--coder", "C-1", "--coder", "C-2")
    run("participant", study, "P-1", "--no-words")
    return study


def test_add_logs_a_bag_with_the_consents_of_the_study(folder: Path, bag: Path) -> None:
    about = ["--session", "S1", "--condition", "quiet", "--participant", "P-1=person_1"]
    added = run("add", folder, bag, *about, "--as-recorded")
    assert added.exit_code == 0, added.output
    recording = open_recording(folder / "sessions/S1")
    assert (recording.info.study, recording.info.condition) == ("zoo", "quiet")
    assert {u.text for u in recording.utterances if u.speaker is Speaker.USER} == {WITHHELD}
    planned = yaml.safe_load((folder / "study.yaml").read_text())["sessions"]["S1"]
    assert planned == {"condition": "quiet", "participants": {"P-1": ["person_1"]}, "bag": str(bag)}
    assert "is there already; a session has one log" in read_refusal("add", folder, bag, "--session", "S1")


def test_add_refuses_bad_input_and_changes_nothing(folder: Path, bag: Path, tmp_path: Path) -> None:
    before = (folder / "study.yaml").read_text()
    assert "unknown condition loud" in read_refusal("add", folder, bag, "--session", "S1", "--condition", "loud")
    assert "unknown participant P-9" in read_refusal("add", folder, bag, "--session", "S1", "--participant", "P-9=a")
    assert "give --session" in read_refusal("add", folder, bag)
    assert "neither a study log nor a rosbag2 bag" in read_refusal("add", folder, tmp_path)
    wrong = read_refusal("add", folder, bag, "--session", "S1", "--participant", "P-1=nobody", "--as-recorded")
    assert "nobody in it has the person id nobody" in wrong
    assert (folder / "study.yaml").read_text() == before
    assert "holds no study.yaml" in read_refusal("add", tmp_path, bag, "--session", "S1")


def test_status_exits_with_1_while_something_is_owed(folder: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "log", session="S1", length_s=30, flags=2)
    assert "is a log of study library-2026, not of zoo" in read_refusal("add", folder, tmp_path / "log")
    study = tmp_path / "library"
    run("init", study, "--name", "library-2026", "--coder", "C-1")
    run("participant", study, "P-7K3MX")
    run("add", study, tmp_path / "log")
    owed = run("status", study)
    assert (owed.exit_code, "1 coding owed, 0 problems" in owed.stdout) == (1, True)
    assert run("import", study / "sessions/S1", "--coder", "C-1", "--complete").exit_code == 0
    done = run("status", study, "--json")
    assert (done.exit_code, json.loads(done.stdout)["complete"]) == (0, True)


def test_withdraw_lists_and_removes_a_session(tmp_path: Path) -> None:
    study, log, bag = tmp_path / "library", tmp_path / "log", tmp_path / "library" / "s1.mp4"
    run("init", study, "--name", "library-2026", "--coder", "C-1")
    run("participant", study, "P-7K3MX", "--coders")
    for name in ("S1", "S2"):
        write_log(tmp_path / name, session=name, length_s=30, flags=2)
        run("add", study, tmp_path / name)
    assert run("pack", study, study / "pack", "--coder", "C-1").exit_code == 0
    of_second = next(study.glob("pack/*_S2_*"))
    bag.write_bytes(b"x")
    plan = (study / "study.yaml").read_text()
    (study / "study.yaml").write_text(plan.replace("  S1: {", "  S1: {media: [s1.mp4], "))
    run("import", study / "sessions/S1", "--coder", "C-1", "--complete")
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file() and path.name != ".lock"}

    asked = CliRunner().invoke(app, ["study", "withdraw", str(study), "--session", "S1"], input="n\n")
    assert asked.exit_code == 1
    for line in (
        "coded by C-1",
        "goes: sessions/S1",
        "changed since: pack/",
        "stays: s1.mp4",
    ):
        assert line in asked.stdout
    assert {path: path.read_bytes() for path in before} == before
    assert "unknown session S9" in read_refusal("withdraw", study, "--session", "S9", "--yes")
    with StudyLog.resume(study / "sessions/S1", WallClock()):
        assert "another process writes this log" in read_refusal("withdraw", study, "--session", "S1", "--yes")

    done = run("withdraw", study, "--session", "S1", "--yes", "--reason", "the robot fell")
    assert done.exit_code == 0, done.output
    left = {path.relative_to(study).as_posix() for path in study.rglob("*S1*")}
    assert (left, (study / "sessions/S2").is_dir(), of_second.exists(), bag.exists()) == (
        set(), True, True, True,
    )  # fmt: skip
    ended = " ".join(run("status", study).output.split())
    assert "session S1 was removed on" in ended
    assert "the robot fell" in ended
    write_log(log, session="S1", length_s=40, flags=1)
    assert run("add", study, log).exit_code == 0
    assert [s["log"] for s in json.loads(run("status", study, "--json").stdout)["sessions"]] == ["intact", "intact"]


def measure_two_coders() -> Agreement:
    """Two sessions of three events each: one pair starts 0.8 s apart, and one differs in its attribute."""
    ana = [label(10, "Ana"), label(20, "Ana"), label(30, "Ana", attribute=Attribute.EMOTIONS)]
    bo = [label(10, "Bo"), label(20.8, "Bo"), label(30, "Bo", attribute=Attribute.USER_INTENTION)]
    labels = {"Ana": tuple(ana), "Bo": tuple(bo)}
    end_ns = START_NS + 60 * NS_PER_S
    sessions = [CodedSession(name=name, start_ns=START_NS, end_ns=end_ns, labels=labels) for name in ("S1", "S2")]
    return measure_agreement(sessions, resamples=5)


def read_columns(table: Table) -> dict[str, list[str]]:
    return {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}


def test_agreement_tables_count_events_by_tolerance() -> None:
    columns = read_columns(list(make_agreement_tables(measure_two_coders()))[1])
    # In each of two sessions, two events match within 1 s. The third counts as two.
    assert columns["n\n1 s"] == ["8", "6", "2", "4", "2"]
    assert list(columns)[2:6] == ["kappa\nevents", "kappa\nframes", "alpha\nframes", "F1\n1 s"]
    assert columns["kappa\nframes"][2] == ".00\n–"  # two sessions give no interval
    labels = ["error emotions", "error engagement", "error user intention"]
    assert columns["label"] == ["all", "error, any attribute", *labels]


def test_escapes_in_names_are_printed_as_text(tmp_path: Path) -> None:
    """Escapes in the names of folders and files are printed as text by every verb that names them."""
    escape = "\x1b[2J\x9b31m"
    study, coded, log = tmp_path / f"zoo{escape}", tmp_path / f"a{escape}.csv", tmp_path / f"log{escape}"
    coded.write_text("session,polarity,attribute,start_s,end_s\nS1,error,engagement,1,2\n")
    write_log(log, session="S1", length_s=30, flags=2)
    for verb, *arguments in (
        ("init", study, "--name", "library-2026", "--coder", "C-1"),
        ("participant", study, "P-7K3MX", "--coders"),
        ("add", study, log),
        ("pack", study, study / f"pack{escape}", "--coder", "C-1"),
        ("import", study, coded, "--coder", "C-1"),
        ("status", study),
        ("agreement", study),
        ("report", study),
        ("withdraw", study, "--session", "S1", "--yes", "--reason", f"the robot fell{escape}"),
        ("status", study),
    ):
        printed = run(verb, *arguments)
        assert isinstance(printed.exception, SystemExit | None), (verb, printed.exception)
        assert not set(printed.output) & set("\x1b\x9b"), verb
