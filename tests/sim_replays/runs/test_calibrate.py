"""Coverage is fitted on some pictures and measured on others."""

import random
from pathlib import Path

import pytest

from action_selector.choose.abstain import calibrated_set
from sim_replays.runs.execute import run, selector_files
from sim_replays.runs.items.suite_items import RunConfig
from sim_replays.runs.results.conformal_coverage import ConformalCase, as_set, cases_of, cross_validated
from sim_replays.runs.results.run_folder import RunError, open_run
from sim_replays.runs.transport import Direct
from sim_replays.suites.fitting import FOLDS, fold_of
from tactful_cli.bench.calibration import show_calibration


def cases(count: int, seed: int = 0) -> list[ConformalCase]:
    """Questions whose probabilities are honest: each option is right as often as it says."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        weights = [draw.random() ** 3 for _ in range(4)]
        probabilities = {place: weight / sum(weights) for place, weight in enumerate(weights)}
        right = draw.choices(range(4), weights)[0]
        made.append(ConformalCase(probabilities=probabilities, right=right, group=str(number)))
    return made


@pytest.mark.parametrize("wanted", [0.7, 0.9])
def test_sets_cover_the_right_option_as_often_as_requested(wanted: float) -> None:
    found = cross_validated(cases(2000), wanted)
    assert found.held.low - 1 <= 100 * wanted <= found.held.high + 1
    assert found.wanted == wanted
    assert 1 <= found.size <= 4


def test_no_picture_has_a_say_in_its_own_sets() -> None:
    """One fold whose right options are all the unlikely ones is not held by what the others teach."""
    honest = [ConformalCase(probabilities={0: 0.9, 1: 0.1}, right=0, group=str(n)) for n in range(200)]
    odd = [
        ConformalCase(probabilities=one.probabilities, right=1, group=one.group) if fold_of(one.group) == 2 else one
        for one in honest
    ]
    share_of_odd = sum(case.right for case in odd) / len(odd)
    assert 0.1 < share_of_odd < 0.35
    assert cross_validated(odd, 0.6).held.value == pytest.approx(100 * (1 - share_of_odd))


def test_what_is_set_is_measured_as_it_is() -> None:
    made = cases(300)
    found = as_set(made, 0.6)
    held = sum(case.right in calibrated_set(case.probabilities, 0.6) for case in made)
    assert (found.wanted, found.coverage) == (None, 0.6)
    assert found.held.value == pytest.approx(100 * held / 300)


def test_too_few_pictures_and_runs_without_probabilities_say_so(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = [ConformalCase(probabilities={0: 1.0}, right=0, group="one picture")]
    with pytest.raises(RunError, match="too few pictures"):
        cross_validated(alone * FOLDS, 0.9)
    asking = RunConfig(suite="egogapbench", data=str(shared_data / "egogapbench"), setting="others-given", limit=30)
    files = selector_files("encoder")
    found = run(tmp_path / "run", asking, files, Direct(files), how="direct", progress=lambda done, total: None)[0]
    assert len(cases_of(found)) == 30
    assert all(0.99 < sum(case.probabilities.values()) < 1.01 for case in cases_of(found))
    show_calibration(tmp_path / "run", [0.9], as_json=False)
    assert "FITTED on labels" in capsys.readouterr().out
    (tmp_path / "run/raw.jsonl").unlink()
    with pytest.raises(RunError, match="no answers with probabilities"):
        cases_of(open_run(tmp_path / "run"))
