"""`tactful calibrate monitor` on a team's own encounters, a folder for each writer, from outside."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sim_replays.scenarios.library import SPLITS, paths
from tests.command_line import tactful

SENSITIVITIES = ["quiet", "balanced", "keen"]


def calibrate(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return tactful("calibrate", "monitor", *options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if "many_hands" not in SPLITS:
        pytest.skip("the encounters by many hands are not here")
    for path in paths("many_hands"):
        own = tmp_path / "talks" / path.parent.name
        if len(list(own.parent.glob("*/"))) < 3 or own.is_dir():
            own.mkdir(parents=True, exist_ok=True)
            if len(list(own.glob("*.yaml"))) < 3:
                shutil.copy(path, own)
    return tmp_path / "talks"


def test_each_writer_is_flagged_by_weights_fitted_without(folder: Path) -> None:
    result = calibrate("--encounters", folder, "--json", "--jobs", "1")
    assert result.returncode == 0, result.stderr
    assert "9 encounters by 3 writers" in result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert [row["sensitivity"] for row in rows] == SENSITIVITIES * (len(rows) // 3)
    assert sum(row["encounters"] for row in rows) == 9 * len(SENSITIVITIES)
    assert all(row["part"]["source"] == "script" for row in rows)
    assert all(low <= high for row in rows if (span := row["interval_over_writers"]["error"]) for low, high in [span])
    flags = [sum(row["scores"]["errors"]["flags"] for row in rows if row["sensitivity"] == s) for s in SENSITIVITIES]
    assert flags == sorted(flags)


def test_the_tables_are_shown_and_nothing_of_a_team_s_is_logged(folder: Path) -> None:
    plot = folder.parent / "reliability.svg"
    result = calibrate("--encounters", folder, "--jobs", "1", "--plot", plot)
    assert result.returncode == 0, result.stderr
    for shown in ("errors", "competences", "by chance", "reliability: script", "balanced"):
        assert shown in result.stdout
    assert "rows were added" not in result.stderr
    assert "known writers" in plot.read_text(encoding="utf-8")


def test_a_look_says_why_and_needs_three_writers(tmp_path: Path) -> None:
    assert "--why: each look at the shipped encounters is logged" in calibrate().stderr
    (tmp_path / "one").mkdir()
    result = calibrate("--encounters", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "has 1 folder, and 3 writers are needed" in result.stderr
    result = calibrate("--encounters", tmp_path, "--write")
    assert "--write: the shipped weights are fitted on the shipped encounters" in result.stderr
