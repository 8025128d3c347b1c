"""The analysis of a study through its commands: tables with zeros, a report, and scripts that give the same numbers."""

import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from norm_core.runtime.time import WallClock
from norm_monitor.session_log.writer import StudyLog
from tests.acceptance.coded_study import CONFIG_SHA256, MINUTES, PEOPLE, SESSIONS, make_coded_study, read_rows, study
from tests.study_session import START_NS, label


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_coded_study(tmp_path_factory.mktemp("study") / "kiosk")


@pytest.fixture(scope="module")
def analysis(folder: Path) -> Path:
    """The analysis, with a session more that nobody coded."""
    study("report", folder)
    return folder / "exports/analysis"


def test_sessions_csv_has_a_row_per_session_and_coder(analysis: Path) -> None:
    errors_by_coder = {
        (row["session"], row["coder"]): (row["condition"], float(row["minutes"]), int(row["errors"]))
        for row in read_rows(analysis / "sessions.csv")
        if row["coder"] != "monitor"
    }
    assert errors_by_coder == {
        (name, coder): (condition, MINUTES, len(starts_s))
        for name, (condition, _, codings) in SESSIONS.items()
        for coder, starts_s in codings.items()
    }
    monitor = [row for row in read_rows(analysis / "sessions.csv") if row["coder"] == "monitor"]
    assert [(row["session"], row["errors"]) for row in monitor] == [
        (name, "0") for name in ("S1", "S3", "S5", "S2", "S4", "S6")
    ]


def test_sessions_csv_names_the_analysed_coder_and_cluster(analysis: Path) -> None:
    table = read_rows(analysis / "sessions.csv")
    chosen = {row["session"]: row["coder"] for row in table if row["analysed"] == "1"}
    assert chosen == {"S1": "C-1", "S2": "C-1", "S3": "C-1", "S4": "C-2", "S5": "C-1", "S6": "C-1"}
    clusters = {row["session"]: row["cluster"] for row in table}
    assert clusters["S1"] == clusters["S6"]
    assert len(set(clusters.values())) == 5


def test_the_dictionary_names_every_column(analysis: Path) -> None:
    table = read_rows(analysis / "dictionary.csv")
    for file in ("sessions.csv", "events.csv"):
        with (analysis / file).open() as lines:
            header = next(lines).strip().split(",")
        assert header == [row["name"] for row in table if row["table"] == file.removesuffix(".csv")]
    assert all(row["description"] for row in table)


def test_report_warns_of_few_units(analysis: Path, folder: Path, tmp_path: Path) -> None:
    page = (analysis / "report.html").read_text()
    warning = "3 units in quiet, 3 units in chatty: with fewer than 5 units"
    assert warning in page.split("<table>")[0]
    assert '<td class="text">quiet</td><td>8</td><td>30.0</td><td>3</td><td>–</td><td>–</td>' in page
    assert '<td class="text">chatty / quiet</td><td>–</td><td>–</td>' in page
    assert "<svg" not in page
    assert warning in " ".join(json.loads(study("report", folder, "-o", tmp_path / "out", "--json"))["notes"])


def test_report_keeps_a_changed_script(folder: Path, tmp_path: Path) -> None:
    study("report", folder, "-o", tmp_path)
    (tmp_path / "analysis.R").write_text("mine\n")
    assert "analysis.R: was changed" in " ".join(json.loads(study("report", folder, "-o", tmp_path, "--json"))["notes"])
    assert (tmp_path / "analysis.R").read_text() == "mine\n"


def test_a_session_counts_by_its_consensus(own_study: Path, tmp_path: Path) -> None:
    with StudyLog.resume(own_study / "sessions/S1", WallClock()) as log:
        log.append(label(5, "consensus", length_s=2), START_NS)
    study("report", own_study, "-o", tmp_path / "out")
    errors_by_coder = {
        row["coder"]: (row["coder_kind"], row["analysed"], row["errors"])
        for row in read_rows(tmp_path / "out/sessions.csv")
        if row["session"] == "S1"
    }
    assert errors_by_coder["consensus"] == ("consensus", "1", "1")
    assert errors_by_coder["C-1"] == ("human", "0", "3")
    study("publish", own_study, tmp_path / "shared")
    assert "\tconsensus\t" in read_published_text(tmp_path / "shared")


@pytest.mark.parametrize(("verb", "what"), [(("report", "-o"), "an analysis"), (("publish",), "a dataset")])
def test_a_foreign_folder_is_refused(folder: Path, tmp_path: Path, verb: tuple[str, ...], what: str) -> None:
    (tmp_path / "a.txt").write_text("mine")
    refused = study(verb[0], folder, *verb[1:], tmp_path, code=2)
    assert f"{tmp_path}: exists, and is not {what}: name a new folder" in refused
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_report_refuses_an_unknown_coder(folder: Path) -> None:
    assert "no session is coded by C-9; it has C-1, C-2, monitor" in study("report", folder, "--coder", "C-9", code=2)
    assert "--coder is for the report of a study" in study("report", folder / "sessions/S1", "--coder", "C-1", code=2)


@pytest.fixture
def own_study(folder: Path, tmp_path: Path) -> Path:
    """A copy to write on, in another place, from which nothing was made yet."""
    return shutil.copytree(folder, tmp_path / "own", ignore=shutil.ignore_patterns("exports", "outputs.jsonl"))


def read_published_text(out: Path) -> str:
    files = [path for path in sorted(out.rglob("*")) if path.is_file() and path.suffix != ".sha256"]
    return "".join(path.read_text() for path in files)


def test_publish_leaves_out_pseudonyms_words_and_dates(own_study: Path, tmp_path: Path) -> None:
    out = tmp_path / "shared"
    done = json.loads(study("publish", own_study, out, "--licence", "CC-BY-4.0", "--json"))
    assert (done["sessions"], done["participants"]) == (6, 6)
    text = read_published_text(out)
    assert not [name for name in (*PEOPLE, "C-1", "C-2", "harbour", "2026", "S1") if name in text]
    events = sorted(out.glob("sub-*/ses-*/beh/*_events.tsv"))
    assert len(events) == len(SESSIONS)
    marks = [line.split("\t")[2] for path in events for line in path.read_text().splitlines()[1:]]
    assert marks.count("error_engagement") == sum(
        len(starts) for *_, codings in SESSIONS.values() for starts in codings.values()
    )
    assert marks.count("speech_participant") == len(SESSIONS)
    described = json.loads((out / "dataset_description.json").read_text())
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, check=True)
    (maker,) = described["GeneratedBy"]
    assert maker["Description"].removesuffix("-dirty") == f"commit {head.stdout.decode().strip()}"
    sessions = [line.split("\t") for path in out.glob("sub-*/*_sessions.tsv") for line in path.open()]
    assert [line[-1].strip() for line in sessions if line[0] != "session_id"] == [CONFIG_SHA256] * len(SESSIONS)
    assert (out / "LICENSE").read_text() == "CC-BY-4.0\n"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in out.rglob("*") if path.is_file()}
    assert modes == {0o600}
    checked = subprocess.run(["sha256sum", "-c", "checksums.sha256"], cwd=out, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout
    again = tmp_path / "again"
    study("publish", own_study, again, "--licence", "CC-BY-4.0")
    assert read_published_text(again) == text  # the key gives the same labels


def test_publish_leaves_out_people_without_consent(own_study: Path, tmp_path: Path) -> None:
    out = tmp_path / "shared"
    study("publish", own_study, out)
    study("participant", own_study, "P-CCC33", "--no-publication")
    printed = study("withdraw", own_study, "P-AAA11", "--publication", code=1)
    assert printed.count(str(out)) == 1  # one line for the folder
    assert f"{out}: was published before; publish it again with" in printed
    study("withdraw", own_study, "P-AAA11", "--publication", code=1)
    done = json.loads(study("publish", own_study, out, "--json"))
    assert (done["sessions"], done["participants"]) == (3, 4)
    study("withdraw", own_study, "P-AAA11", "--publication")  # nothing is left now
    assert "session S1: P-AAA11 withdrew, so is left out" in done["left_out"]
    assert "session S3: P-CCC33 did not consent to publication, so is left out" in done["left_out"]
    assert len(list(out.glob("sub-*/ses-*/beh/*_events.tsv"))) == 3
    key = json.loads((own_study / "publication_key.json").read_text())
    assert sorted(key["participants"]) == ["P-BBB22", "P-DDD44", "P-EEE55", "P-FFF66"]
    for person in ("P-BBB22", "P-DDD44", "P-EEE55"):
        study("withdraw", own_study, person, "--everything", code=1)
    assert "no session may be published" in study("publish", own_study, out, code=2)


def test_publish_leaves_out_expired_sessions(own_study: Path, tmp_path: Path) -> None:
    plan = (own_study / "study.yaml").read_text()
    (own_study / "study.yaml").write_text(plan.replace("retention_days: 0", "retention_days: 1"))
    assert "its retention ended" in study("publish", own_study, tmp_path / "out", code=2)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def published(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A study, its key file, and what was published of it."""
    place = tmp_path_factory.mktemp("published")
    own = shutil.copytree(folder, place / "own", ignore=shutil.ignore_patterns("exports"))
    study("participant", own, "P-AAA11", "--keys", place / "keys.json", "--name", "Rosa Lind")
    study("publish", own, place / "shared", "--keys", place / "keys.json")
    return own, place / "keys.json", place / "shared"


def test_publish_accepts_media_with_consent_to_clips(published: tuple[Path, Path, Path], tmp_path: Path) -> None:
    own, _, shared = published
    own, out = shutil.copytree(own, tmp_path / "own"), shutil.copytree(shared, tmp_path / "shared")
    key = json.loads((own / "publication_key.json").read_text())
    clip = out / key["sessions"]["S2"] / "beh/greeting.webm"
    clip.write_bytes(b"\x1aE\xdf\xa3\0")
    assert "greeting.webm: is not text, and may show a face" in study("publish", own, out, code=2)
    study("participant", own, "P-BBB22", "--clips")
    for _ in range(2):
        study("publish", own, out)
        assert clip.exists()
        assert "greeting.webm" in (out / "checksums.sha256").read_text()
    shutil.copy(clip, out / "greeting.webm")
    assert "greeting.webm: is not text" in study("publish", own, out, code=2)
    (out / "greeting.webm").unlink()
    study("withdraw", own, "P-BBB22", "--clips")
    assert "greeting.webm: is not text" in study("publish", own, out, code=2)


def test_publish_keeps_an_edited_readme(published: tuple[Path, Path, Path], tmp_path: Path) -> None:
    own, keys, shared = published
    own, out = shutil.copytree(own, tmp_path / "own"), shutil.copytree(shared, tmp_path / "shared")
    (out / "README.md").write_text("Ours.\n")
    study("publish", own, out, "--keys", keys)
    assert (out / "README.md").read_text() == "Ours.\n"
