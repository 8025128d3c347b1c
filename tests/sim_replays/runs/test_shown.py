"""How runs are shown: tables, and what other programs read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sim_replays.runs.results.run_folder import finish
from tactful_cli.bench import comparison
from tactful_cli.bench.group import app
from tests.sim_replays.requested_data import videonorms_folder
from tests.sim_replays.runs.test_clips import Scripted, asking, ran


def test_groups_and_controls_stand_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = ran(tmp_path / "run", asking("videonorms", videonorms_folder(tmp_path / "data"), "text"), Scripted())
    headline = finish(run).headline
    assert headline
    assert (headline.name, headline.value.value) == ("accuracy of adherence", 75.0)
    comparison.show_runs([tmp_path / "run"], False, by="culture")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "the robot: the model inside our steps"
    names = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    groups = [f"videonorms text encoder, culture {culture}" for culture in ("cn", "us")]
    controls = [f"{name} (videonorms text encoder)" for name in ("random model", "always adherence")]
    assert names[:5] == ["videonorms text encoder", *groups, *controls]
    assert not any("table 4" in name for name in names)  # published rows are of models alone


def test_two_runs_are_compared_item_by_item(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data")
    for name, setting in (("text", "text"), ("again", "text"), ("blind", "blind")):
        ran(tmp_path / name, asking("videonorms", data, setting), Scripted())

    def compare(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["compare", *(str(tmp_path / name) for name in arguments[:2]), *arguments[2:]])

    equal = compare("text", "again")
    assert "parity: every outcome, answer, probability and digest is the same" in equal.stdout
    told = json.loads(compare("text", "blind", "--json").stdout)
    assert [run["run"] for run in told["runs"]] == ["videonorms text encoder", "videonorms blind encoder"]
    assert not told["parity"]
    assert "window_digest" in told["first"]["differs_in"]
    # A written norm is graded, and neither right nor wrong.
    assert {task["task"] for task in told["tasks"]} == {"adherence", "evidence"}
