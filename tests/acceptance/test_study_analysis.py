"""The analysis of a study through its commands: tables with zeros, a report, and scripts that give the same numbers."""

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.coded_study import MINUTES, SESSIONS, make_coded_study, read_rows, study
from tests.command_line import tactful


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
    """What coders agreed on together is a file as those of coders. Agreement of coders leaves it out."""
    before = study("agreement", own_study, "--json", "--resamples", "5")
    agreed = tmp_path / "S1_consensus.csv"
    agreed.write_text("polarity,attribute,start_s,end_s\nerror,engagement,5,7\n")
    study("import", own_study, agreed)
    assert study("agreement", own_study, "--json", "--resamples", "5") == before
    sessions = json.loads(tactful("study", "status", own_study, "--json").stdout)["sessions"]
    assert (sessions[0]["coded_by"], sessions[0]["problems"]) == (["C-1", "C-2", "consensus"], [])
    study("report", own_study, "-o", tmp_path / "out")
    errors_by_coder = {
        row["coder"]: (row["coder_kind"], row["analysed"], row["errors"])
        for row in read_rows(tmp_path / "out/sessions.csv")
        if row["session"] == "S1"
    }
    assert errors_by_coder["consensus"] == ("consensus", "1", "1")
    assert errors_by_coder["C-1"] == ("human", "0", "3")


def test_a_foreign_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    refused = study("report", folder, "-o", tmp_path, code=2)
    assert f"{tmp_path}: exists, and is not an analysis: name a new folder" in refused
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_report_refuses_an_unknown_coder(folder: Path) -> None:
    assert "no session is coded by C-9; it has C-1, C-2, monitor" in study("report", folder, "--coder", "C-9", code=2)
    of_log = study("report", folder / "sessions/S1", code=2)
    assert "is no folder of a study; name one, or see a session with ./tactful view BAG" in of_log


@pytest.fixture
def own_study(folder: Path, tmp_path: Path) -> Path:
    """A copy to write on, in another place, from which nothing was made yet."""
    return shutil.copytree(folder, tmp_path / "own", ignore=shutil.ignore_patterns("exports", "outputs.jsonl"))
