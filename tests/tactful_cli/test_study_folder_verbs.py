"""The verbs of a study's folder as its user calls them: results, errors and exit codes."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from norm_core.bags.writer import BagWriter
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from study_desk.log.recording import open_recording
from study_desk.log.writer import StudyLog
from study_desk.privacy.redact import WITHHELD
from tactful_cli.main import app
from tests.study_session import records, write_log


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, arguments)], prog_name="tactful")


def refused(*arguments: str | Path) -> str:
    """What the program tells about input that it does not take."""
    shown = run(*arguments)
    assert isinstance(shown.exception, TactfulError), shown.output
    return str(shown.exception)


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


def test_a_bag_is_logged_with_the_consents_of_the_study(folder: Path, bag: Path) -> None:
    about = ["--session", "S1", "--condition", "quiet", "--participant", "P-1=person_1"]
    added = run("add", folder, bag, *about, "--as-recorded")
    assert added.exit_code == 0, added.output
    recording = open_recording(folder / "sessions/S1")
    assert (recording.info.study, recording.info.condition) == ("zoo", "quiet")
    assert {u.text for u in recording.utterances if u.speaker is Speaker.USER} == {WITHHELD}
    planned = yaml.safe_load((folder / "study.yaml").read_text())["sessions"]["S1"]
    assert planned == {"condition": "quiet", "participants": {"P-1": ["person_1"]}, "bag": str(bag)}
    assert "is there already; a session has one log" in refused("add", folder, bag, "--session", "S1")


def test_bad_input_of_add_is_told_and_changes_nothing(folder: Path, bag: Path, tmp_path: Path) -> None:
    before = (folder / "study.yaml").read_text()
    assert "unknown condition loud" in refused("add", folder, bag, "--session", "S1", "--condition", "loud")
    assert "unknown participant P-9" in refused("add", folder, bag, "--session", "S1", "--participant", "P-9=a")
    assert "give --session" in refused("add", folder, bag)
    assert "neither a study log nor a rosbag2 bag" in refused("add", folder, tmp_path)
    wrong = refused("add", folder, bag, "--session", "S1", "--participant", "P-1=nobody", "--as-recorded")
    assert "nobody in it has the person id nobody" in wrong
    assert (folder / "study.yaml").read_text() == before
    assert "holds no study.yaml" in refused("add", tmp_path, bag, "--session", "S1")


def test_status_exits_with_1_while_something_is_owed(folder: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "log", session="S1", length_s=30, flags=2)
    assert "is a log of study library-2026, not of zoo" in refused("add", folder, tmp_path / "log")
    study = tmp_path / "library"
    run("init", study, "--name", "library-2026", "--coder", "C-1")
    run("participant", study, "P-7K3MX")
    run("add", study, tmp_path / "log")
    owed = run("status", study)
    assert (owed.exit_code, "1 coding owed, 0 problems" in owed.stdout) == (1, True)
    assert run("import", study / "sessions/S1", "--coder", "C-1", "--complete").exit_code == 0
    (study / "holiday.mp4").write_bytes(b"x")
    done = run("status", study, "--json", "--stored")
    result = json.loads(done.stdout)
    assert (done.exit_code, result["complete"]) == (0, True)
    assert {item["kind"] for item in result["stored"]} >= {"flag", "coding", "file"}
    why = {Path(item["place"]).name: item["why"] for item in result["stored"]}
    assert why["study.yaml"] == "sessions, participants by pseudonym, and their consents"
    assert why["holiday.mp4"] == "not of the study desk: look into it"


def test_a_session_is_removed_after_it_is_listed_and_can_be_added_anew(tmp_path: Path) -> None:
    study, log, bag = tmp_path / "library", tmp_path / "log", tmp_path / "library" / "s1.mp4"
    run("init", study, "--name", "library-2026", "--coder", "C-1")
    run("participant", study, "P-7K3MX")
    for name in ("S1", "S2"):
        write_log(tmp_path / name, session=name, length_s=30, flags=2)
        run("add", study, tmp_path / name)
        run("export", study / "sessions" / name, "--form", "csv")
    bag.write_bytes(b"x")
    plan = (study / "study.yaml").read_text()
    (study / "study.yaml").write_text(plan.replace("  S1: {", "  S1: {media: [s1.mp4], "))
    run("import", study / "sessions/S1", "--coder", "C-1", "--complete")
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file() and path.name != ".lock"}

    asked = CliRunner().invoke(app, ["study", "remove", str(study), "S1"], input="n\n")
    assert asked.exit_code == 1
    for line in (
        "coded by C-1",
        "goes: sessions/S1/events-000001.jsonl",
        "changed since: exports/S1.csv",
        "stays: s1.mp4",
    ):
        assert line in asked.stdout
    assert {path: path.read_bytes() for path in before} == before
    assert "unknown session S9" in refused("remove", study, "S9", "--yes")
    with StudyLog.resume(study / "sessions/S1", WallClock()):
        assert "another process writes this log" in refused("remove", study, "S1", "--yes")

    done = run("remove", study, "S1", "--yes", "--reason", "the robot fell")
    assert done.exit_code == 0, done.output
    left = {path.relative_to(study).as_posix() for path in study.rglob("*S1*")}
    assert (left, (study / "sessions/S2").is_dir(), (study / "exports/S2.csv").exists(), bag.exists()) == (
        set(), True, True, True,
    )  # fmt: skip
    shown = " ".join(run("status", study).output.split())
    assert "session S1 was removed on" in shown
    assert "the robot fell" in shown
    write_log(log, session="S1", length_s=40, flags=1)
    assert run("add", study, log).exit_code == 0
    assert [s["log"] for s in json.loads(run("status", study, "--json").stdout)["sessions"]] == ["intact", "intact"]


def test_who_serves_a_page_is_told_what_coders_miss(folder: Path, tmp_path: Path) -> None:
    write_log(tmp_path / "S1", session="S1", length_s=60, flags=0)
    run("participant", folder, "P-7K3MX")
    log = folder / "sessions" / "S1"
    text = (folder / "study.yaml").read_text().replace("study: zoo", "study: library-2026")
    text = text.replace("conditions: [quiet]", "conditions: [apology]")
    (folder / "study.yaml").write_text(text)
    assert run("add", folder, tmp_path / "S1").exit_code == 0
    (folder / "study.yaml").write_text((folder / "study.yaml").read_text().replace("  S1: {", "  S1: {coders: [C-2], "))
    told = run("review", log, "--coder", "C-1", "--host", "203.0.113.1")  # an address of nobody: it ends there
    assert "session S1 is assigned to C-2, not to C-1" in told.output
    assert "coders see no picture and hear no sound: name the bag with --bag" in told.output
