"""`tactful scenarios`, as a person calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.runtime.errors import TactfulError
from sim_replays.scenarios.library import SPLITS
from tactful_cli.scenarios import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return str(result.stdout)


def test_counts_are_given_by_attribute_split_and_polarity() -> None:
    rows = json.loads(run("counts", "--json"))
    assert len(rows) == 7
    assert set(rows[0]) == {
        "attribute", *(f"{split} {kind}" for split in SPLITS for kind in ("error", "competence"))
    }  # fmt: skip


def test_the_scripts_that_come_along_are_listed_and_well() -> None:
    listed = json.loads(run("list", "--json"))
    assert run("check") == f"{len(listed)} encounters without a fault\n"


def test_a_bag_is_made_once_and_then_only_by_force(tmp_path: Path) -> None:
    arguments = ("generate", "zh_teahouse", "--out", str(tmp_path), "--frames-hz", "0")
    assert "zh_teahouse" in run(*arguments)
    assert (tmp_path / "zh_teahouse.truth.json").is_file()
    with pytest.raises(TactfulError, match="--force"):
        run(*arguments)
    assert "5 events" in run(*arguments, "--force")


def test_nothing_to_make_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TactfulError, match="name encounters, or a split"):
        run("generate", "--out", str(tmp_path))
