"""The analysis of a study through its commands: tables with zeros, a report, and scripts that give the same numbers."""

import csv
import json
import shutil
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.acceptance.coded_study import MINUTES, SESSIONS, coded_study
from tests.acceptance.test_study_coding import study
from tests.patience import PATIENCE_S


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coded_study(tmp_path_factory.mktemp("study") / "kiosk")


@pytest.fixture(scope="module")
def analysis(folder: Path) -> Path:
    """The analysis, with a session more that nobody coded."""
    out = folder / "exports/analysis"
    study("analyse", folder, out)
    return out


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_session_has_a_row_per_coder_also_with_nothing_found(analysis: Path) -> None:
    found = {
        (row["session"], row["coder"]): (row["condition"], float(row["minutes"]), int(row["errors"]))
        for row in rows(analysis / "sessions.csv")
        if row["coder"] != "monitor"
    }
    assert found == {
        (name, coder): (condition, MINUTES, len(starts_s))
        for name, (condition, _, codings) in SESSIONS.items()
        for coder, starts_s in codings.items()
    }
    monitor = [row for row in rows(analysis / "sessions.csv") if row["coder"] == "monitor"]
    assert [(row["session"], row["errors"]) for row in monitor] == [
        (name, "0") for name in ("S1", "S3", "S5", "S2", "S4", "S6")
    ]


def test_one_coder_stands_for_each_session_and_shared_participants_make_a_cluster(analysis: Path) -> None:
    table = rows(analysis / "sessions.csv")
    chosen = {row["session"]: row["coder"] for row in table if row["analysed"] == "1"}
    assert chosen == {"S1": "C-1", "S2": "C-1", "S3": "C-1", "S4": "C-2", "S5": "C-1", "S6": "C-1"}
    clusters = {row["session"]: row["cluster"] for row in table}
    assert clusters["S1"] == clusters["S6"]
    assert len(set(clusters.values())) == 5


def test_events_are_in_seconds_from_the_start(analysis: Path) -> None:
    found = [
        (float(row["start_s"]), float(row["duration_s"]), row["attribute"])
        for row in rows(analysis / "events.csv")
        if (row["session"], row["coder"]) == ("S1", "C-2")
    ]
    assert found == [(5.0, 2.0, "engagement"), (20.0, 2.0, "engagement")]


def test_the_dictionary_names_every_column(analysis: Path) -> None:
    named = json.loads((analysis / "dictionary.json").read_text())
    table = rows(analysis / "dictionary.csv")
    for file in ("sessions.csv", "events.csv"):
        with (analysis / file).open() as lines:
            header = next(lines).strip().split(",")
        assert (
            header == list(named[file]) == [row["name"] for row in table if row["table"] == file.removesuffix(".csv")]
        )
        assert all(about["description"] for about in named[file].values())


def test_only_the_owner_can_read_what_was_written(analysis: Path) -> None:
    assert stat.S_IMODE(analysis.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in analysis.rglob("*")}
    assert modes.pop("figures") == 0o700
    assert set(modes.values()) == {0o600}


def test_the_report_needs_nothing_else(analysis: Path) -> None:
    page = (analysis / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "<script" not in page
    assert "src=" not in page
    assert "6 sessions of 60.0 minutes with 6 participants in 2 conditions: quiet, chatty." in page


def estimates(analysis: Path, tmp_path: Path, command: list[str], written: str) -> list[dict[str, str]]:
    here = shutil.copytree(analysis, tmp_path / written)
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "competences: none in a condition" in done.stdout
    return rows(here / written)


NEEDS = pytest.mark.skipif(
    find_spec("statsmodels") is None, reason="statsmodels is not installed (pip install statsmodels)"
)
NEEDS_R = pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (apt install r-base-core)")


def check_estimates(found: list[dict[str, str]]) -> None:
    """Rates of 8 events in 30 minutes and 13 in 30, by hand."""
    from math import log, sqrt

    assert [(row["outcome"], row["term"]) for row in found] == [("errors", "(Intercept)"), ("errors", "chatty")]
    assert float(found[0]["estimate"]) == pytest.approx(log(8 / 30), abs=1e-9)
    assert float(found[1]["estimate"]) == pytest.approx(log(13 / 8), abs=1e-9)
    assert float(found[1]["std_error"]) == pytest.approx(sqrt(1 / 8 + 1 / 13), abs=1e-9)
    pearson = sum((y - 8 / 3) ** 2 / (8 / 3) for y in (3, 0, 5)) + sum((y - 13 / 3) ** 2 / (13 / 3) for y in (6, 3, 4))
    assert float(found[0]["dispersion"]) == pytest.approx(pearson / 4, abs=1e-9)
    # Sandwich over clusters: of quiet 1/3, -8/3, 7/3; of chatty 5/3, -4/3, -1/3, whose last shares a participant.
    quiet = ((1 / 3) ** 2 + (8 / 3) ** 2 + (7 / 3) ** 2) / 8**2
    assert float(found[0]["std_error_robust"]) == pytest.approx(sqrt(5 / 4 * quiet), abs=1e-9)


@NEEDS
def test_the_python_script_fits_the_model(analysis: Path, tmp_path: Path) -> None:
    check_estimates(estimates(analysis, tmp_path, [sys.executable, "analysis.py"], "estimates_python.csv"))


@NEEDS_R
def test_the_r_script_fits_the_model(analysis: Path, tmp_path: Path) -> None:
    check_estimates(estimates(analysis, tmp_path, ["Rscript", "analysis.R"], "estimates_r.csv"))


@NEEDS
@NEEDS_R
def test_both_scripts_agree(analysis: Path, tmp_path: Path) -> None:
    python = estimates(analysis, tmp_path, [sys.executable, "analysis.py"], "estimates_python.csv")
    r = estimates(analysis, tmp_path, ["Rscript", "analysis.R"], "estimates_r.csv")
    for one, other in zip(python, r, strict=True):
        assert one.keys() == other.keys()
        for name in list(one)[2:]:
            assert float(one[name]) == pytest.approx(float(other[name]), abs=1e-6)


def test_a_changed_script_stays(folder: Path, tmp_path: Path) -> None:
    study("analyse", folder, tmp_path)
    (tmp_path / "analysis.R").write_text("mine\n")
    assert "analysis.R: was changed" in " ".join(json.loads(study("analyse", folder, tmp_path, "--json"))["notes"])
    assert (tmp_path / "analysis.R").read_text() == "mine\n"


def test_an_unknown_coder_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "no session is coded by C-9; it has C-1, C-2, monitor" in study(
        "analyse", folder, tmp_path, "--coder", "C-9", code=2
    )


def test_a_withdrawal_deletes_the_analysis(folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "own")
    study("analyse", own, own / "exports/again")
    done = json.loads(study("withdraw", own, "P-BBB22", "--words", "--json"))
    assert "exports/again/sessions.csv" in done["outputs"]["deleted"]
    assert not (own / "exports/again/report.html").exists()


def test_a_plan_from_a_pilot_says_what_it_assumes(folder: Path) -> None:
    options = ("--from", folder, "--rate-b", "12", "--simulations", "500", "--json")
    found = json.loads(study("plan", *options))
    assert found["assumed"]["minutes"] == MINUTES
    assert found["assumed"]["rate_a"] == pytest.approx(80 / 30)
    assert found["pilot"]["rates"]["chatty"] == pytest.approx(130 / 30)
    assert [size["power"] for size in found["sizes"]] == [0.8, 0.9]
    assert found == json.loads(study("plan", *options))
    assert "both rates are equal" in study("plan", "--rate-a", "2", "--rate-b", "2", "--minutes", "9", code=2)
    assert "give --rate-a, --rate-b and --minutes" in study("plan", "--rate-a", "2", code=2)
