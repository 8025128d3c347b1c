"""`tactful study` as its user calls it: results, errors and exit codes."""

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from study_desk.coding.forms.sheet import FormError
from study_desk.log.reader import read
from study_desk.log.recording import open_recording
from study_desk.privacy.redact import KeyFile
from study_desk.study.study_folder import Study, init_study
from tactful_cli.main import app
from tests.command_line import IN_BACKGROUND, TACTFUL, tactful
from tests.goldens import compare
from tests.patience import PATIENCE_S
from tests.study_session import write_log

SHIPPED = Path(__file__).parents[2] / "sim_replays" / "scenarios" / "shipped"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "log"
    write_log(folder, length_s=120, flags=8)
    return folder


@pytest.fixture
def own_log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


def wordless_bag(path: Path) -> Path:
    with BagWriter(path) as bag:
        bag.write_message("/words", make("std_msgs/msg/String", {"data": "hi"}), 5)
    return path


def test_a_sound_log_verifies_and_a_changed_one_does_not(own_log: Path) -> None:
    shown = tactful("study", "status", str(own_log), "--json")
    result = json.loads(shown.stdout)
    assert (shown.returncode, result["sound"], result["sealed"]) == (0, True, True)
    assert tactful("study", "status", str(own_log), "--expect", result["head"]).returncode == 0
    assert tactful("study", "status", str(own_log), "--expect", "0" * 64).returncode == 1
    file = own_log / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"ros_ns":1', b'"ros_ns":2'), *lines[5:]]))
    broken = tactful("study", "status", str(own_log))
    assert broken.returncode == 1
    assert "events-000001.jsonl:5: was changed" in broken.stdout
    refused = tactful("study", "report", str(own_log))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "events-000001.jsonl:5" in refused.stderr


def test_what_is_sound_in_a_damaged_log_is_saved(own_log: Path, tmp_path: Path) -> None:
    file = own_log / "events-000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"ros_ns":1', b'"ros_ns":2'), *lines[5:]]))
    saved = tactful("study", "repair", str(own_log), str(tmp_path / "new"))
    assert saved.returncode == 1
    assert "lost: events-000001.jsonl:5 was changed" in saved.stdout
    assert tactful("study", "status", str(tmp_path / "new")).returncode == 0
    shown = tactful("study", "report", str(tmp_path / "new"), "-o", str(tmp_path / "r.html"))
    assert shown.returncode == 0
    assert "this log is not whole, and lacks" in " ".join(shown.stderr.split())
    assert tactful("study", "repair", str(tmp_path / "new"), str(tmp_path / "again")).returncode == 0


@pytest.mark.parametrize("form", ["csv", "eaf", "textgrid"])
def test_every_form_is_written_and_over_a_coded_file_only_when_asked(log: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "x").write_text("a day's work")
    command = ["study", "export", str(log), "--form", form, "-o", str(tmp_path / "x"), "--json"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, FormError)
    assert "--force" in str(refused.exception)
    assert (tmp_path / "x").read_text() == "a day's work"
    assert json.loads(CliRunner().invoke(app, [*command, "--force"]).stdout)["labels"] >= 8
    assert (tmp_path / "x").stat().st_size > 500


def test_labels_outside_the_session_are_counted_and_named(own_log: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "polarity,attribute,start_s,end_s\nerror,engagement,9000,9001\nerror,engagement,-5,-4\nerror,emotions,5,6\n"
    )
    command = ["study", "import", str(own_log), str(tmp_path / "a.csv"), "--coder", "Ana", "--json"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, FormError)
    told = str(refused.exception)
    assert "2 of 3 labels lie outside the session, which is from 0 to 60.0 s: " in told
    assert "a.csv, line 2: 9000.0 to 9001.0 s" in told
    assert "a.csv, line 3: -5.0 to -4.0 s" in told
    assert json.loads(CliRunner().invoke(app, [*command, "--outside"]).stdout)["imported"] == 3


def test_a_bag_is_named_in_a_log_that_was_written_without_it(own_log: Path, tmp_path: Path) -> None:
    bag = wordless_bag(tmp_path / "s07_bag")
    named = CliRunner().invoke(app, ["study", "add", str(own_log), str(bag), "--json"])
    assert json.loads(named.stdout)["name"] == "s07_bag"
    wrong = CliRunner().invoke(app, ["study", "add", str(own_log), str(bag), "--session", "S1"])
    assert "a log states its session itself" in str(wrong.exception)
    assert read(own_log).faults == ()
    recording = open_recording(own_log)
    assert recording.info.bag
    assert (recording.info.bag.name, recording.info.bag.offset_ns) == ("s07_bag", 5)
    assert len(recording.info.bag.sha256) == 64
    assert not any("not ended properly" in note for note in recording.notes)


def test_verdicts_are_imported_under_the_name_that_is_given(own_log: Path, tmp_path: Path) -> None:
    flag = open_recording(own_log).flags[0]
    verdict = {"event_id": flag.event_id, "reviewer": "R1", "verdict": "reject"}
    (tmp_path / "v.json").write_text(json.dumps({"session": "S07", "reviews": [verdict]}))
    command = ["study", "import", str(own_log), str(tmp_path / "v.json")]
    assert CliRunner().invoke(app, [*command, "--coder", "Zed"]).stdout.startswith("1 verdict\n")
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CliRunner().invoke(app, [*command, "--coder", "Zed"]).stdout.startswith("nothing new\n")
    assert [review.reviewer for review in open_recording(own_log).reviews] == ["Zed", "R1"]


def test_a_bag_without_flags_is_reported_as_such(tmp_path: Path) -> None:
    shown = tactful("study", "report", str(wordless_bag(tmp_path / "bag")), "-o", str(tmp_path / "r.html"))
    assert shown.returncode == 0
    assert "holds no flags" in shown.stderr
    assert "holds no flags" in (tmp_path / "r.html").read_text()
    study = init_study(tmp_path / "study", "a").folder
    logged = tactful("study", "add", str(study), str(tmp_path / "bag"), "--session", "b")
    assert logged.returncode == 0
    assert "holds nothing to watch" in logged.stderr


def test_the_monitor_runs_over_a_bag_without_flags(tmp_path: Path) -> None:
    study = init_study(tmp_path / "zoo", "zoo").folder
    folder = study / "sessions/S1"
    logged = tactful("study", "add", str(study), str(SHIPPED / "zoo_keeper"), "--session", "S1", "--json")
    assert logged.returncode == 0, logged.stderr
    result = json.loads(logged.stdout)
    golden = {
        key.split()[-1] for key in compare.read("shipped_bags", compare.renames()) if key.startswith("zoo_keeper ")
    }
    recording = open_recording(folder)
    assert {flag.event_id for flag in recording.flags} == golden
    assert result["flags"] == len(golden) > 0
    assert result["entries"] == len(read(folder).entries)
    assert "/humans/persons/tracked" in {presence.source_topic for presence in recording.presences}
    assert recording.utterances
    assert recording.robot_speech
    assert recording.info.table_version
    assert tactful("study", "report", str(folder), "-o", str(tmp_path / "r.html")).returncode == 0
    assert "penguin" in (tmp_path / "r.html").read_text()


def test_flags_in_a_bag_are_taken_as_recorded_or_found_anew(log: Path, tmp_path: Path) -> None:
    recording = open_recording(log)
    with BagWriter(tmp_path / "bag") as bag:
        for utterance in recording.utterances:
            bag.write("/tactful/utterances", utterance, utterance.end_ns)
        bag.write("/tactful/decisions", recording.decisions[0], recording.decisions[0].decided_ns)
        bag.write("/tactful/flags", recording.flags[0], recording.end_ns)
    study = init_study(tmp_path / "a", "a")
    for option, name in ((), "recorded"), (("--watch",), "watched"):
        shown = tactful("study", "add", str(study.folder), str(tmp_path / "bag"), "--session", name, *option)
        assert shown.returncode == 0, shown.stderr
    assert open_recording(study.folder / "sessions/recorded").flags == recording.flags[:1]
    anew = open_recording(study.folder / "sessions/watched")
    assert recording.flags[0].event_id not in {flag.event_id for flag in anew.flags}
    assert (anew.utterances, anew.decisions) == (recording.utterances, recording.decisions[:1])


@pytest.mark.parametrize(
    "arguments", [["report", "/nowhere"], ["status", "/nowhere"], ["export", "/", "--form", "csv"]]
)
def test_what_is_no_log_is_bad_input(arguments: list[str]) -> None:
    shown = tactful("study", *arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "Traceback" not in shown.stderr


def test_a_participant_can_take_everything_back(own_log: Path, tmp_path: Path) -> None:
    keys, study = str(tmp_path / "keys.json"), init_study(tmp_path / "study", "library-2026").folder
    named = ["--keys", keys, "--name", "Ana"]
    assert tactful("study", "participant", str(study), "P-7K3MX", *named).stdout == "P-7K3MX: words\n"
    drawn = json.loads(tactful("study", "participant", str(study), *named[:3], "Bo", "--json").stdout)["pseudonym"]
    assert set(KeyFile(Path(keys)).pseudonyms) == {"P-7K3MX", drawn}
    assert {*Study(study).file.participants} == {"P-7K3MX", drawn}
    log = json.loads(tactful("study", "add", str(study), str(own_log), "--json").stdout)["log"]
    done = tactful("study", "withdraw", str(study), "P-7K3MX", "--everything", "--keys", keys, "--json")
    result = json.loads(done.stdout)
    assert result["key_removed"]
    status = json.loads(tactful("study", "status", log, "--stored", "--json").stdout)
    assert (status["sound"], [status["erased"]]) == (True, [*result["entries"].values()])


@pytest.mark.parametrize(("start", "number"), [((), signal.SIGINT), (IN_BACKGROUND, signal.SIGTERM)])
def test_review_prints_a_link_a_reviewer_and_gives_the_log_back(
    own_log: Path, start: Sequence[str], number: int
) -> None:
    command = [*start, *TACTFUL, "study", "review", str(own_log), "--reviewer", "Ana", "--reviewer", "Bo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        links = [server.stdout.readline().split() for _ in range(2)]
        assert [name for name, _ in links] == ["Ana", "Bo"]
        assert all(link.startswith("http://127.0.0.1:") for _, link in links)
        assert (
            "another process writes this log"
            in tactful("study", "import", str(own_log), "--coder", "Cy", "--complete").stderr
        )
        server.send_signal(number)
        assert server.wait(PATIENCE_S) == 130
    assert tactful("study", "status", str(own_log)).returncode == 0


@pytest.mark.parametrize("session", ["S/../../evil", "../evil", ".."])
def test_no_session_name_leads_out_of_the_folder(tmp_path: Path, session: str) -> None:
    folder = tmp_path / "a/b/log"
    write_log(folder, session=session, length_s=30, flags=2)
    for arguments in (["export", str(folder), "--form", "csv"], ["report", str(folder)]):
        shown = CliRunner().invoke(app, ["study", *arguments])
        assert shown.exit_code == 0, shown.output
        assert Path(shown.stdout.splitlines()[0]).parent == tmp_path / "a/b"
    assert len([path for path in tmp_path.rglob("*") if path.suffix in {".csv", ".html"}]) == 2
