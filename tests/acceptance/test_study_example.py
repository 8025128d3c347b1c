"""Generated sessions of several participants, in one study, by commands alone."""

import csv
import json
from pathlib import Path

import pytest

from tests.acceptance.test_study_coding import study
from tests.command_line import tactful

PEOPLE = ("--participant", "P-AAA11=person_1", "--participant", "P-BBB22=voice_2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "library-2026"
    study("init", folder, "--coder", "C-1")
    for person in ("P-AAA11", "P-BBB22", "P-CCC33"):
        study("participant", folder, person)
    return folder


def test_a_study_has_sessions_of_several_participants(folder: Path, tmp_path: Path) -> None:
    study("example", tmp_path / "S1", "--session", "S1", "--minutes", "2", *PEOPLE)
    study("example", tmp_path / "S2", "--session", "S2", "--minutes", "1", "--participant", "P-CCC33")
    for name in ("S1", "S2"):
        study("add", folder, tmp_path / name)
    found = json.loads(tactful("study", "status", str(folder), "--json").stdout)
    assert [[*each["participants"]] for each in found["sessions"]] == [["P-AAA11", "P-BBB22"], ["P-CCC33"]]
    assert not any(each["problems"] for each in found["sessions"])
    study("withdraw", folder, "P-BBB22", "--words")
    said = (folder / "sessions/S1/events-000001.jsonl").read_text()
    assert "looking for a book about whales" in said
    assert "Is there a quiet place to read" not in said


def test_a_bag_with_its_participants_is_logged_in_a_study(folder: Path, tmp_path: Path) -> None:
    values = ("--session", "S1", "--minutes", "1", "--flags", "4", *PEOPLE)
    study("example", tmp_path / "S1", *values, "--bag", tmp_path / "bag")
    added = study("add", folder, tmp_path / "bag", "--session", "S1", *PEOPLE)
    assert "4 flags" in added
    flags = tmp_path / "flags.csv"
    study("export", folder / "sessions/S1", "--form", "csv", "-o", flags)
    with flags.open(encoding="utf-8-sig", newline="") as file:
        times = {(row["event_id"], row["start_ns"]) for row in csv.DictReader(file)}
    study("export", tmp_path / "S1", "--form", "csv", "-o", flags, "--force")
    with flags.open(encoding="utf-8-sig", newline="") as file:
        assert {(row["event_id"], row["start_ns"]) for row in csv.DictReader(file)} == times


def test_a_participant_or_an_id_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    for twice in ("P-AAA11=person_2", "P-BBB22=person_1"):
        people = ("--participant", "P-AAA11=person_1", "--participant", twice)
        assert "is given twice" in study("example", tmp_path / "S1", *people, code=2)
        assert not (tmp_path / "S1").exists()
