"""`tactful bench monitor --encounters FOLDER`: a site's own encounters, from outside."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.json_codec import to_json
from norm_core.records.presence import Presence
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.encounters.library import load_folder
from sim_replays.monitor_bench.script_driver import SensedEncounter, TimedRecord, make_script_records
from tests.command_line import tactful

LATE_ANSWER = """
id: late_answer
setting: "hotel lobby"
user: "a guest who waits for an answer"
voices: {r: robot_warm, u: man_scot}
turns:
  - {id: u1, at: 3.0, say: "Excuse me, where is the breakfast room, please?"}
  - {id: r1, gap_s: 12, say: "It is on the first floor, next to the lift."}
  - {id: u2, gap_s: 1.0, say: "You took a long time. I nearly left."}
  - {id: r2, gap_s: 0.7, say: "I am sorry that I kept you waiting so long."}
  - {id: u3, gap_s: 0.8, say: "All right."}
people:
  u: {seen: [1..end]}
events:
  - polarity: error
    attributes: [conversational_mechanics, engagement, social_norms_and_routines]
    onset: u1.end
    offset: r1
    basis: timing
    evidence: [u1, u1.end..r1]
    rationale: "Leaves a question without an answer for twelve seconds."
    correction: "Answer at once, or say that you are looking it up."
  - polarity: competence
    attributes: [social_norms_and_routines, emotions]
    onset: r2
    offset: r2.end
    basis: wording
    evidence: [u2, r2]
    rationale: "Apologises for the wait and names it."
"""
HARMLESS = """
id: harmless
setting: "hotel lobby"
user: "a guest who asks for the lift"
voices: {r: robot_warm, u: man_scot}
turns:
  - {id: u1, at: 2.0, say: "Is there a lift?"}
  - {id: r1, gap_s: 0.6, say: "Yes, the lift is behind you, on the left."}
  - {id: u2, gap_s: 0.6, say: "Great."}
people:
  u: {seen: [1..end]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lobby"
    folder.mkdir()
    for name, text in (("late_answer", LATE_ANSWER), ("harmless", HARMLESS)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def bench(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return tactful("bench", "monitor", *options)


def measured(*options: str | Path) -> dict[str, Any]:
    result = bench(*options, "--json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_folder_is_measured_beside_baselines(folder: Path) -> None:
    found = measured("--encounters", folder)
    for polarity, basis in (("errors", "timing"), ("competences", "wording")):
        scores = found[polarity]
        assert (scores["recall"], scores["events"], scores["by_basis"]) == (100.0, 1, {basis: 100.0})
        assert scores["false"] == scores["flags"] - 1
        assert scores["precision"] == pytest.approx(100 / scores["flags"])
        low, high = scores["f1_interval"]
        assert low <= scores["f1"] <= high
        assert max(scores["by_attribute"].values()) > 0
    assert (found["harmless"]["encounters"], found["harmless"]["false_errors"]) == (1, 0)
    assert 0 < found["harmless"]["minutes"] < 1
    assert found["harmless"]["false_errors_per_hour_interval"] is None  # one encounter
    by_sensitivity = found["sensitivities"]
    assert list(by_sensitivity) == ["balanced", "quiet", "keen"]
    assert by_sensitivity["balanced"] == {name: found[name] for name in ("errors", "competences", "harmless")}
    flags = [by_sensitivity[name]["errors"]["flags"] for name in ("quiet", "balanced", "keen")]
    assert flags == sorted(flags)
    assert found["baselines"]["prior"]["errors"]["events"] == 1


def test_what_was_heard_is_measured_in_place_of_the_script(folder: Path, tmp_path: Path) -> None:
    for encounter in load_folder(folder):  # heard before, and nobody spoke
        records, truth = make_script_records(encounter)
        given = [TimedRecord(at_ns=at_ns, entry=one) for at_ns, one in records if isinstance(one, Presence)]
        heard = SensedEncounter(truth=truth, sources=(UTTERANCES,), given=tuple(given))
        (tmp_path / f"{encounter.id}_0.json").write_text(to_json(heard), encoding="utf-8")
    heard_scores, scripted = measured("--encounters", folder, "--sound", tmp_path), measured("--encounters", folder)
    assert (heard_scores["source"], scripted["source"]) == ("audio", "script")
    assert (heard_scores["errors"]["recall"], scripted["errors"]["recall"]) == (0.0, 100.0)


def test_each_faulty_file_is_named_with_its_field_or_line(folder: Path) -> None:
    (folder / "harmless.yaml").write_text(HARMLESS.replace("gap_s: 0.6", "gap: 0.6", 1), encoding="utf-8")
    (folder / "torn.yaml").write_text("id: torn\nturns: }", encoding="utf-8")
    (folder / "late_answer.yaml").write_text(LATE_ANSWER.replace("offset: r1\n", "offset: 900\n"), encoding="utf-8")
    result = bench("--encounters", folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert "harmless.yaml: turns.1.gap: unknown key; did you mean gap_s?" in result.stderr
    assert "torn.yaml, line 2, column 8" in result.stderr
    assert "late_answer.yaml: events.0: u1.end..900 is" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--encounters", "nowhere"], "nowhere: is not a folder; give a folder of encounters"),
        (["--encounters", ".", "--split", "development"], "--split and --encounters: exclude each other; give one"),
    ],
)
def test_a_wrong_choice_of_talk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = bench(*options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
