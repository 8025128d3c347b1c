"""`python -m calibration.verbs.selector` on runs: what it writes changes the selector, bad labels are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from action_selector.selector import SelectorFiles, open_selector
from calibration.verbs import selector
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock
from tests.action_selector.questions import NOW_NS, other, request

inspect_ai = pytest.importorskip("inspect_ai")

ITEMS = 590


@pytest.fixture(scope="module")
def runs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The logs of the given, swapped and blind settings, and one of too few items."""
    from sim_replays.evals.registry import make_suite_task
    from sim_replays.evals.robot import robot

    folder = tmp_path_factory.mktemp("runs")
    logs = {}
    for name, limit in {"others-given": None, "others-swapped": 150, "blind": 150, "few": 40}.items():
        setting = "others-given" if name == "few" else name
        task = make_suite_task("egogapbench", str(shared_data / "egogapbench"), setting=setting)
        [log] = inspect_ai.eval(
            task, model="none", solver=robot(), limit=limit, log_dir=str(folder), display="none", score_display=False
        )
        logs[name] = Path(log.location)
    return logs


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


def test_too_few_labels_say_how_many_are_missing(runs: dict[str, Path]) -> None:
    refused = refusal(calibrate(runs["few"]))
    assert "40 labelled choices have probabilities, and 100 are needed: 60 are missing" in refused


def test_runs_that_hold_a_choice_twice_or_differ_are_refused(runs: dict[str, Path]) -> None:
    given = runs["others-given"]
    assert "would count twice; leave out one run" in refusal(calibrate(given, given))
    assert "differs from" in refusal(calibrate(given, runs["blind"]))
