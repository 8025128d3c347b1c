"""`python -m calibration.verbs.selector` on runs: what it writes changes the selector, bad labels are refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from action_selector.selector import SelectorFiles, open_selector
from calibration.verbs import selector
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from sim_replays.runs.results.run_folder import RAW
from tactful_cli.main import app
from tests.action_selector.questions import NOW_NS, other, request

ITEMS = 590


@pytest.fixture(scope="module")
def runs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the given, swapped and blind settings."""
    folder = tmp_path_factory.mktemp("runs")
    for setting in ("others-given", "others-swapped", "blind"):
        command = ["bench", "run", "egogapbench", "--data", str(shared_data / "egogapbench"), "--setting", setting]
        done = CliRunner().invoke(app, [*command, "--transport", "direct", "--out", str(folder / setting)])
        assert done.exit_code == 0, done.output
    return {path.name: path for path in folder.iterdir()}


def calibrate(*arguments: object) -> Any:
    return CliRunner().invoke(selector.app, [*map(str, arguments)])


def refusal(result: Any) -> str:
    assert isinstance(result.exception, TactfulError), result.output
    return str(result.exception)


def test_a_run_becomes_a_calibration_that_the_selector_loads(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    controls = ["--control", runs["others-swapped"], "--control", runs["blind"]]
    result = calibrate(runs["others-given"], "--write", "kitchen", *controls, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    given, *shown = found["runs"].values()
    assert len(shown) == 2
    assert given["choices"] == ITEMS
    before, after = given["qualities"]["none"], given["qualities"]["chosen in each fold"]
    assert after["error"] <= 0.05 < before["error"]
    assert given["gain_by_count"]["value"] >= 6
    assert after["log_loss"] < before["log_loss"]
    for sets in given["sets"]:
        if not sets["by_count"]:
            assert sets["held"]["low"] <= 100 * sets["stated"] <= sets["held"]["high"]
    assert all(control["accuracy"]["value"] < given["accuracy"]["value"] for control in shown)

    asked = request("Lay the table.", "Sing a song.", others=(other("stirring the soup"),))
    highest = []
    for calibration in ("", "kitchen"):
        selector = open_selector(SelectorFiles(calibration=calibration), ReplayClock(NOW_NS))
        decision = selector.decide(selector.ask(asked)).decision
        highest.append(max(one.probability for one in decision.candidates))
    assert 0.5 < highest[1] < highest[0]


def test_the_tables_say_what_abstaining_gains(runs: dict[str, Path]) -> None:
    result = calibrate(runs["others-given"], "--coverage", "0.9")
    assert result.exit_code == 0, result.output
    for word in (
        "ECE",
        "Brier",
        "fewest options left first",
        "90 %",
        "each number",
        "reliability: after",
        "fitted on all choices",
    ):
        assert word in result.output


def test_too_few_labels_say_how_many_are_missing(runs: dict[str, Path], tmp_path: Path) -> None:
    few = tmp_path / "few"
    shutil.copytree(runs["others-given"], few)
    lines = (few / RAW).read_text(encoding="utf-8").splitlines(keepends=True)
    (few / RAW).write_text("".join(lines[:40]), encoding="utf-8")
    assert "40 labelled choices have probabilities, and 100 are needed: 60 are missing" in refusal(calibrate(few))
    (few / RAW).write_text(lines[0].replace('"by_text":false', '"by_text":true'), encoding="utf-8")
    assert "1 answers were read from text" in refusal(calibrate(few))
    (few / RAW).unlink()
    assert "no answers with probabilities" in refusal(calibrate(few))


def test_runs_that_hold_a_choice_twice_or_differ_are_refused(runs: dict[str, Path]) -> None:
    given = runs["others-given"]
    assert "would count twice; leave out one run" in refusal(calibrate(given, given))
    assert "differs from" in refusal(calibrate(given, runs["blind"]))
