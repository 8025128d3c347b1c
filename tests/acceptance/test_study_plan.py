"""A frozen plan, crossed designs, orders drawn for coders, examples to code by, and the consent to be watched."""

import csv
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.schema import Participant
from tests.acceptance.coded_study import NEEDS_R, PEOPLE, make_coded_study, read_rows, study, write_session
from tests.command_line import tactful
from tests.patience import PATIENCE_S
from tests.study_session import START_NS, write_log

PLAN = """plan:
  hypotheses: [a chatty robot makes more errors]
  primary_outcome: errors
  primary_coder: C-1
  exclusions: {aborted: the participant left in the first two minutes}
"""


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_coded_study(tmp_path_factory.mktemp("plan") / "kiosk")
    change(folder, "plan: {}\n", PLAN)
    return folder


@pytest.fixture
def own(coded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(coded, tmp_path / "own")


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "study.yaml").read_text()
    assert text.count(old) == 1, old
    (folder / "study.yaml").write_text(text.replace(old, new))


def report(folder: Path, *options: str) -> tuple[str, list[str]]:
    """Report, and return the page and the deviations from the plan."""
    plan = json.loads(study("report", folder, "--json", *options))["plan"]
    return (folder / "exports/analysis/report.html").read_text(), plan["deviations"]


def test_report_compares_the_analysis_with_the_frozen_plan(own: Path) -> None:
    assert "No plan was frozen" in report(own)[0]
    change(own, "  S4: {", "  S4: {excluded: aborted, ")
    frozen = json.loads(study("plan", own, "--freeze", "--json"))["frozen"]
    assert [(version["version"], version["recorded"], version["coded"]) for version in frozen] == [(1, 6, 6)]
    page, deviations = report(own)
    assert deviations == []
    assert all(
        text in page
        for text in (frozen[0]["sha256"], frozen[0]["date"], "agrees with the plan, which was frozen after 6 sessions")
    )
    analysed = {row["session"] for row in read_rows(own / "exports/analysis/sessions.csv") if row["analysed"] == "1"}
    assert analysed == {"S1", "S2", "S3", "S5", "S6"}  # the planned exclusion counts in no rate
    assert len(json.loads(study("plan", own, "--freeze", "--json"))["frozen"]) == 1  # nothing new to freeze


def test_report_names_each_deviation_from_the_plan(own: Path) -> None:
    study("plan", own, "--freeze")
    change(own, "\n  primary_outcome: errors", "\n  primary_outcome: competences")
    change(own, "  S2: {", "  S2: {excluded: too many errors, ")
    study("withdraw", own, "--session", "S6", "--yes", "--reason", "odd")
    page, deviations = report(own)
    assert deviations == [
        "study.yaml changes primary outcome from errors to competences",
        "session S2 is excluded, which is not planned: too many errors",
        "session S4 counts by C-2, planned is C-1",
        "session S6 was removed after the plan was frozen: odd",
    ]
    assert "session S2 is excluded, which is not planned" in page
    first, second = json.loads(study("plan", own, "--freeze", "--json"))["frozen"]
    page, deviations = report(own)
    assert (first["plan"]["primary_outcome"], second["plan"]["primary_outcome"]) == ("errors", "competences")
    assert "with 5 sessions recorded and 5 coded, changes primary outcome from errors to competences" in deviations[0]
    assert first["sha256"] in page
    assert second["sha256"] in page
    lines = (own / "plan.jsonl").read_text()
    (own / "plan.jsonl").write_text(lines.replace('"errors"', '"competences"', 1))
    assert "version 1 was changed after it was frozen" in study("report", own, code=2)


def test_an_incomplete_plan_is_not_frozen(own: Path) -> None:
    change(own, "\n  primary_outcome: errors", "\n  primary_outcome: smiles")
    assert "plan: unknown primary_outcome smiles; study.yaml has errors, competences" in study("plan", own, code=2)
    change(own, "  primary_outcome: smiles\n", "")
    assert "plan: has no primary_outcome" in study("plan", own, "--freeze", code=2)


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six participants meet both conditions in the order drawn for them; the last one in the other."""
    folder = tmp_path_factory.mktemp("crossed") / "kiosk"
    study("init", folder, "--name", "kiosk", "--condition", "quiet", "--condition", "chatty", "--coder", "C-1")
    plan = PLAN.replace("primary_outcome: errors", "primary_outcome: error_engagement")
    change(folder, "plan: {}\n", f"{plan}  design: crossed\n")
    for number, person in enumerate(PEOPLE):
        order = json.loads(study("participant", folder, person, "--json"))["order"]
        for period, condition in enumerate(order[::-1] if person == PEOPLE[-1] else order):
            name = f"S{number}{period}"
            write_session(
                folder.parent / name, name, condition, [person], START_NS + (2 * number + period) * 86_400 * NS_PER_S
            )
            study("add", folder, folder.parent / name)
            errors = (number + 1) * (2 if condition == "chatty" else 1) + period
            marks = "".join(f"error,engagement,{at_s},{at_s + 1}\n" for at_s in range(errors))
            (folder.parent / "coded.csv").write_text(f"polarity,attribute,start_s,end_s\n{marks}")
            study("import", folder / "sessions" / name, folder.parent / "coded.csv", "--coder", "C-1")
    study("report", folder)
    return folder


def test_a_crossed_design_counterbalances_orders(crossed: Path) -> None:
    people = yaml.safe_load((crossed / "study.yaml").read_text())["participants"]
    orders = Counter(tuple(entry["order"]) for entry in people.values())
    assert {*orders.values()} == {3}
    table = [row for row in read_rows(crossed / "exports/analysis/sessions.csv") if row["analysed"] == "1"]
    assert {row["session"]: row["period"] for row in table} == {
        row["session"]: str(int(row["session"][2]) + 1) for row in table
    }
    assert all(len({row["participant"] for row in table if row["cluster"] == other["cluster"]}) == 1 for other in table)
    drawn = people[PEOPLE[-1]]["order"]
    assert report(crossed)[1] == [
        f"participant {PEOPLE[-1]} met {', '.join(drawn[::-1])}, drawn was {', '.join(drawn)}"
    ]


@NEEDS_R
def test_the_r_script_holds_the_period_of_a_crossed_design(crossed: Path, tmp_path: Path) -> None:
    here = shutil.copytree(crossed / "exports/analysis", tmp_path / "r")
    done = subprocess.run(
        ["Rscript", "analysis.R"], cwd=here, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '<td class="text">error engagement</td><td class="text">quiet</td>' in (here / "report.html").read_text()
    estimates = {
        row["term"]: row for row in read_rows(here / "estimates_r.csv") if row["outcome"] == "error_engagement"
    }
    plain, held = (estimates[f"chatty / quiet{part}"] for part in ("", ", period held"))
    # Errors are drawn twice as many where it is chatty, and one more in the second session.
    for ratio in (plain, held):
        assert float(ratio["low"]) < 2 < float(ratio["high"])
        assert float(ratio["estimate"]) == pytest.approx(2, rel=0.15)
    assert plain["estimate"] != held["estimate"]


@pytest.fixture
def uncoded(tmp_path: Path) -> Path:
    """Five sessions to code, of a participant who agreed to be watched, and one of another who did not."""
    folder = tmp_path / "library-2026"
    study("init", folder, "--condition", "apology", "--coder", "C-1", "--coder", "C-2")
    study("participant", folder, "P-7K3MX", "--coders")
    study("participant", folder, "P-SHY11", "--clips", "--publication")
    for name in ("S1", "S2", "S3", "S4", "S5"):
        person = Participant(pseudonym="P-SHY11" if name == "S5" else "P-7K3MX", person_ids=("person_1",), clips=True)
        write_log(tmp_path / name, session=name, length_s=20, flags=0, participants=(person,))
        study("add", folder, tmp_path / name)
    return folder


def test_each_coder_has_an_order_of_sessions(uncoded: Path) -> None:
    change(uncoded, "coded_twice: 0.2", "coded_twice: 1")
    orders = {}
    for coder in ("C-1", "C-2"):
        out = uncoded / "packs" / coder
        packed = json.loads(study("pack", uncoded, out, "--coder", coder, "--json"))
        orders[coder] = packed["sessions"]
        names = [path.stem.removesuffix(f"_{coder}").split("_", 1) for path in sorted(out.glob("*.eaf"))]
        assert names == [[str(number), name] for number, name in enumerate(orders[coder], 1)]
        assert list(json.loads((out / f"{coder}.boris").read_text())["observations"]) == orders[coder]
        assert "\n".join(f"{n}. {name}" for n, name in enumerate(orders[coder], 1)) in (out / "README.txt").read_text()
    assert sorted(orders["C-1"]) == sorted(orders["C-2"]) == ["S1", "S2", "S3", "S4"]
    assert orders["C-1"] != orders["C-2"]
    first, second, *_ = orders["C-1"]
    page = ("code", uncoded / "sessions" / second, "--coder", "C-1", "--host", "203.0.113.1")  # an address of nobody
    assert f"C-1: codes {first} before {second}" in study(*page, code=2)


def test_sessions_without_consent_are_hidden_from_coders(uncoded: Path) -> None:
    why = "session S5: P-SHY11 did not agree to be watched by coders"
    packed = json.loads(study("pack", uncoded, uncoded / "packs/1", "--coder", "C-1", "--json"))
    assert "S5" not in packed["sessions"]
    assert why in " ".join(packed["remarks"])
    assert not [path for path in (uncoded / "packs/1").rglob("*") if "S5" in path.read_text()]
    assert why in study("code", uncoded / "sessions/S5", "--coder", "C-1", code=2)
    assert why.split(": ")[1] in " ".join(tactful("study", "status", uncoded).stderr.split())
    left = tactful("study", "withdraw", uncoded, "P-7K3MX", "--coders")
    assert left.returncode == 0, left.stderr
    assert not list((uncoded / "packs/1").glob("*.eaf"))
    assert "has no session to code" in study("pack", uncoded, uncoded / "packs/2", "--coder", "C-1", code=2)


def test_a_pack_holds_examples_and_defined_severities(uncoded: Path) -> None:
    change(uncoded, "severities: {}\n", "severities: {minor: one turn repairs it, major: the aim is lost}\n")
    joke = "{id: joke, name: joke, polarity: error, attribute: emotions, include: [a pun], exclude: [a smile]}"
    change(uncoded, "codes: []", f"codes:\n  - {joke}")
    out = uncoded / "packs/1"
    study("pack", uncoded, out, "--coder", "C-1")
    with (out / "codebook.csv").open(encoding="utf-8-sig", newline="") as file:
        book = {row["name"]: row for row in csv.DictReader(file)}
    assert (book["joke"]["counts"], book["joke"]["does not count"]) == ("a pun", "a smile")
    assert all(row["counts"] and row["does not count"] for name, row in book.items() if not name.startswith("sev"))
    assert book["severity major"]["definition"] == "the aim is lost"
    behaviours: dict[str, dict[str, Any]] = {
        behaviour["code"]: behaviour
        for behaviour in json.loads((out / "C-1.boris").read_text())["behaviors_conf"].values()
    }
    assert behaviours["joke"]["description"] == "Counts: a pun. Does not count: a smile"
    assert behaviours["joke"]["modifiers"]["0"]["values"] == ["minor", "major"]
    assert "major: the aim is lost" in behaviours["joke"]["modifiers"]["0"]["description"]
    document = ElementTree.parse(next(out.glob("*.eaf"))).getroot()
    entries = {value.text: value.get("DESCRIPTION") for value in document.iter("CVE_VALUE")}
    assert entries == {"minor": "one turn repairs it", "major": "the aim is lost"}
