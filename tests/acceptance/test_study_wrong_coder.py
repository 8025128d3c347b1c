"""A coding under the wrong coder is refused or taken back, and import says what it took, by the product's commands."""

import json
from pathlib import Path

import pytest

from tests.acceptance.test_study_coding import coded, study
from tests.command_line import tactful
from tests.study_session import write_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of two sessions, the first of which is the second coder's alone."""
    folder = tmp_path / "library-2026"
    study("init", folder, "--coder", "C-1", "--coder", "C-2")
    study("participant", folder, "P-7K3MX")
    for name in ("S1", "S2"):
        write_log(tmp_path / name, session=name, length_s=60, flags=3)
        study("add", folder, tmp_path / name)
    text = (folder / "study.yaml").read_text()
    (folder / "study.yaml").write_text(text.replace("  S1: {", "  S1: {coders: [C-2], "))
    return folder


def coders_of(folder: Path, session: str) -> list[str]:
    found = json.loads(tactful("study", "status", str(folder), "--json").stdout)
    return next(each["coded_by"] for each in found["sessions"] if each["name"] == session)


def test_a_renamed_file_is_refused_or_taken_back(folder: Path, tmp_path: Path) -> None:
    wrong = coded(tmp_path / "S1_C-1.csv", 10, 20)
    for target in (folder, folder / "sessions" / "S1"):
        coder = [] if target == folder else ["--coder", "C-1"]
        refused = study("import", target, wrong, *coder, code=2)
        assert "S1 is assigned to C-2, not to C-1" in " ".join(refused.split())
        assert "--unassigned" in refused
    assert coders_of(folder, "S1") == []
    study("import", folder, wrong, "--unassigned")
    assert coders_of(folder, "S1") == ["C-1"]
    taken_back = study("import", folder / "sessions" / "S1", "--retract", "--coder", "C-1")
    assert taken_back.startswith("S1: coding by C-1 taken back: 2 labels, which the log keeps\nhead ")
    assert coders_of(folder, "S1") == []
    study("import", folder, wrong, "--coder", "C-2")
    assert coders_of(folder, "S1") == ["C-2"]
    assert json.loads(study("status", folder / "sessions" / "S1", "--json"))["sound"]
    assert "has no coding by C-1" in study("import", folder / "sessions" / "S1", "--retract", "--coder", "C-1", code=2)


def test_import_says_from_which_file_and_whose_each_session_is(folder: Path, tmp_path: Path) -> None:
    files = [coded(tmp_path / "S1_C-2.csv", 10), coded(tmp_path / "S2_C-1.csv", 10, 20)]
    lines = study("import", folder, *files).splitlines()
    assert lines[:2] == ["S1: 1 label", f"by C-2 from {files[0]}"]
    assert lines[3:5] == ["S2: 2 labels", f"by C-1 from {files[1]}"]
    assert study("import", folder, files[0]).splitlines()[:2] == ["S1: nothing new", f"by C-2 from {files[0]}"]
