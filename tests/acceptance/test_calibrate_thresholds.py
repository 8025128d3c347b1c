"""`tactful calibrate thresholds` on a coded study."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.coded_bags import CHEER, SESSION_S, bagged_study, import_coding, refusal, run, talk
from tests.acceptance.conversation_bag import write_talk

SESSIONS = 12
TARGET = ("--false-errors-per-hour", "20")


@pytest.fixture(scope="module")
def uncoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose bags nobody has coded."""
    return bagged_study(tmp_path_factory.mktemp("study") / "museum", SESSIONS, "C-1", "C-2")


@pytest.fixture(scope="module")
def coded(uncoded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same study, coded by one coder, who marks cheer after bad news and no silence."""
    folder = shutil.copytree(uncoded, tmp_path_factory.mktemp("coded") / "museum")
    for number in range(1, SESSIONS + 1):
        import_coding(folder, f"S{number}", "C-1", CHEER)
    return folder


@pytest.fixture(scope="module")
def thresholds(coded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thresholds that are fitted on it."""
    folder = tmp_path_factory.mktemp("thresholds")
    written = folder / "museum.json"
    shown = run("calibrate", "thresholds", coded, *TARGET, "--out", folder / "run", "--write", written)
    assert "12 sessions, 0.4 h, 36 labelled errors; 4 shape the thresholds, 8 test them. Target: at most" in shown
    assert "others from 1.00" in shown  # the strictest row of the path
    return written


def flags(bag: Path, *options: object) -> list[Any]:
    found: list[Any] = json.loads(run("flags", bag, "--json", *options))
    return found


def errors(found: list[Any], attribute: str) -> int:
    return sum(flag["polarity"] == "error" and attribute in flag["attributes"] for flag in found)


def test_a_new_bag_has_fewer_false_errors_and_the_true_ones(thresholds: Path, tmp_path: Path) -> None:
    bag = write_talk(tmp_path / "new", talk(), SESSION_S)
    before, after = flags(bag), flags(bag, "--operating-point", thresholds)
    assert errors(before, "conversational_mechanics") >= 1
    assert errors(after, "conversational_mechanics") == 0
    assert errors(after, "emotions") > errors(before, "emotions")
    hashes = [{flag["provenance"]["config_sha256"] for flag in found} for found in (before, after)]
    assert not hashes[0] & hashes[1]
    assert all(flag["least_probability"] <= flag["probability"] for flag in after)


def test_thresholds_for_another_monitor_are_refused(thresholds: Path, tmp_path: Path) -> None:
    artefact = json.loads(thresholds.read_text(encoding="utf-8"))
    bag = write_talk(tmp_path / "new", talk()[:3], 20)
    for changes, told in (
        ({"made_with": {**artefact["made_with"], "weights": "others"}}, "differs from what runs here in weights"),
        ({"by_attribute": {"charm": 0.5}}, "is not a thresholds artefact"),
        ({"kind": "unit weights"}, "is not a thresholds artefact of format 1"),
    ):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**artefact, **changes}), encoding="utf-8")
        told_by = refusal("flags", bag, "--operating-point", other)
        assert told in told_by
        assert "calibrate thresholds" in told_by


@pytest.mark.parametrize("target", [(), (*TARGET, "--precision", "0.9"), ("--precision", "nan"), ("--precision", "1")])
def test_a_target_that_is_none_is_refused(coded: Path, target: tuple[str, ...]) -> None:
    assert "--precision" in refusal("calibrate", "thresholds", coded, *target)


def test_what_would_count_twice_is_refused(coded: Path, tmp_path: Path) -> None:
    again = shutil.copytree(coded, tmp_path / "museum")
    assert "give one study another name" in refusal("calibrate", "thresholds", coded, again, *TARGET)
