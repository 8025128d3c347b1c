"""A calibration changes what is published and how large sets are, and serves no other selector."""

from pathlib import Path

import pytest

from action_selector.choose.calibration import COVERAGES, FORMAT, KIND, SelectorCalibration
from action_selector.choose.probability_scaling import ProbabilityScaling
from action_selector.selector import SelectorFiles, open_selector
from norm_core.records.decision import Decision
from norm_core.records.outcome import Outcome
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import ReplayClock
from tests.action_selector.calibrations import write_calibration
from tests.action_selector.questions import NOW_NS, other, request

ASKED = request("Lay the table.", "Sing a song.", "Stir the soup.", others=(other("stirring the soup"),))


def decide(**settings: object) -> Decision:
    selector = open_selector(SelectorFiles.model_validate(settings), ReplayClock(NOW_NS))
    return selector.decide(selector.ask(ASKED)).decision


def list_probabilities(decision: Decision) -> list[float]:
    return [candidate.probability for candidate in decision.candidates]


def test_published_probabilities_follow_the_calibration(tmp_path: Path) -> None:
    plain = decide()
    same = decide(calibration=str(write_calibration(tmp_path / "one.json", temperature=1, mass=0.6)))
    flat = decide(calibration=str(write_calibration(tmp_path / "four.json", temperature=4)))
    assert list_probabilities(same) == pytest.approx(list_probabilities(plain))
    assert 1 / 2 < max(list_probabilities(flat)) < max(list_probabilities(plain))
    assert sum(list_probabilities(flat)) == pytest.approx(1)
    assert list_probabilities(flat)[2] == 0  # the veto stays
    digests = {decision.provenance.config_sha256 for decision in (plain, same, flat)}
    assert len(digests) == 3


def test_path_of_a_calibration_does_not_change_the_digest(tmp_path: Path) -> None:
    here, there = (decide(calibration=str(write_calibration(tmp_path / name))) for name in ("here.json", "there.json"))
    assert here.provenance.config_sha256 == there.provenance.config_sha256


def test_calibrated_mass_decides_between_answer_and_abstention(tmp_path: Path) -> None:
    sure = decide(calibration=str(write_calibration(tmp_path / "sure.json", mass=0.0)))
    unsure = decide(calibration=str(write_calibration(tmp_path / "unsure.json", mass=0.99)))
    assert (sure.outcome, unsure.outcome) == (Outcome.ANSWERED, Outcome.ABSTAINED)


def test_coverage_is_rounded_up_to_the_next_mass() -> None:
    masses = tuple(coverage / 2 for coverage in COVERAGES)
    calibration = SelectorCalibration(
        kind=KIND,
        format=FORMAT,
        made_on="",
        made_with={},
        fitted_on={},
        scaling=ProbabilityScaling(),
        masses=masses,
        masses_by_count={3: tuple(0.25 for _ in COVERAGES)},
    )
    assert calibration.mass_for(0.895, 2) == pytest.approx(0.45)
    assert calibration.mass_for(0.1, 2) == pytest.approx(0.25)
    assert calibration.mass_for(0.9, 3) == 0.25
    assert calibration.mass_for(0.999, 2) == 1


@pytest.mark.parametrize("named", ["encoder", "settings", "weights", "model"])
def test_calibration_of_another_selector_is_refused(tmp_path: Path, named: str) -> None:
    path = write_calibration(tmp_path / "other.json", other={named: "12"})
    with pytest.raises(ConfigError, match=f"differs from what runs here in {named}; fit it anew .*verbs.selector"):
        decide(calibration=str(path))


def test_calibration_of_other_settings_is_refused(tmp_path: Path) -> None:
    path = str(write_calibration(tmp_path / "default.json"))
    decide(calibration=path, coverage=0.9, when_unsure="do_nothing")
    with pytest.raises(ConfigError, match="differs from what runs here in settings"):
        decide(calibration=path, match_threshold=0.5)
