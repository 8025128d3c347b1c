"""`tactful scenarios`, as a person calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.library import SPLITS
from tactful_cli.scenarios import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return str(result.stdout)


def test_encounters_of_all_splits_are_listed() -> None:
    assert {row["split"] for row in json.loads(run("--json"))["encounters"]} == set(SPLITS)


def test_a_bag_is_made_once_and_then_only_by_force(tmp_path: Path) -> None:
    arguments = ("zh_teahouse", "--out", str(tmp_path), "--frames-hz", "0")
    assert "zh_teahouse" in run(*arguments)
    assert (tmp_path / "zh_teahouse.truth.json").is_file()
    with pytest.raises(TactfulError, match="--force"):
        run(*arguments)
    assert "5 events" in run(*arguments, "--force")


def test_bags_need_a_folder() -> None:
    with pytest.raises(TactfulError, match="--out is missing"):
        run("zh_teahouse")
