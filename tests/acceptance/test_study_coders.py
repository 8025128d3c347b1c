"""Orders drawn for coders, examples to code by, and the consent to be watched."""

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from norm_monitor.session_log.schema import Participant
from tests.acceptance.coded_study import study
from tests.command_line import tactful
from tests.study_session import write_log


def change(folder: Path, old: str, new: str) -> None:
    text = (folder / "study.yaml").read_text()
    assert text.count(old) == 1, old
    (folder / "study.yaml").write_text(text.replace(old, new))


@pytest.fixture
def uncoded(tmp_path: Path) -> Path:
    """Five sessions to code, of a participant who agreed to be watched, and one of another who did not."""
    folder = tmp_path / "library-2026"
    study("init", folder, "--condition", "apology", "--coder", "C-1", "--coder", "C-2")
    study("participant", folder, "P-7K3MX", "--coders")
    study("participant", folder, "P-SHY11")
    for name in ("S1", "S2", "S3", "S4", "S5"):
        person = Participant(pseudonym="P-SHY11" if name == "S5" else "P-7K3MX", person_ids=("person_1",))
        write_log(tmp_path / name, session=name, length_s=20, flags=0, participants=(person,))
        study("add", folder, tmp_path / name)
    return folder


def test_each_coder_has_an_order_of_sessions(uncoded: Path) -> None:
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


def test_sessions_without_consent_are_hidden_from_coders(uncoded: Path) -> None:
    why = "session S5: P-SHY11 did not agree to be watched by coders"
    packed = json.loads(study("pack", uncoded, uncoded / "packs/1", "--coder", "C-1", "--json"))
    assert "S5" not in packed["sessions"]
    assert why in " ".join(packed["remarks"])
    assert not [path for path in (uncoded / "packs/1").rglob("*") if "S5" in path.read_text()]
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
