"""`python -m calibration.monitor` on a team's own encounters, a folder for each writer."""

import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from calibration.monitor import measure
from norm_core.runtime.errors import TactfulError
from sim_replays.scenarios.library import SPLITS, paths

app = typer.Typer()
app.command()(measure)


def calibrate(*options: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, options)])


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


def test_the_tables_are_shown_and_nothing_of_a_team_s_is_logged(folder: Path) -> None:
    result = calibrate("--encounters", folder, "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "9 encounters by 3 writers" in result.stderr
    for shown in ("errors", "competences", "by chance", "reliability: script", "balanced"):
        assert shown in result.stdout
    assert "rows were added" not in result.stderr
    assert "reliability: script, known writers" in result.output


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--why: each evaluation on the shipped encounters is logged"),
        (["--encounters", "{folder}"], "has 1 folder, and 3 writers are needed"),
        (["--encounters", "{folder}", "--write"], "--write: the shipped weights are fitted on the shipped encounters"),
    ],
)
def test_an_evaluation_needs_a_reason_and_three_writers(tmp_path: Path, options: list[str], problem: str) -> None:
    (tmp_path / "one").mkdir()
    error = calibrate(*(option.format(folder=tmp_path) for option in options)).exception
    assert isinstance(error, TactfulError)
    assert problem in str(error)
