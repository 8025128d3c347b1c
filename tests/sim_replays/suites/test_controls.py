"""Controls: what is scored without looking."""

import json
from pathlib import Path

import pytest

from sim_replays.suites import hsri, videonorms
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from sim_replays.suites.hsri import SUITE as HSRI
from sim_replays.suites.report import report, to_plain
from sim_replays.suites.target import PredictionFile, Target, best_constant, most_frequent, prior, uniform
from sim_replays.suites.videonorms import SUITE as VIDEONORMS
from tests.sim_replays.requested_data import hsri_folder, norm, segment


def norms(folder: Path, count: int) -> list[Target]:
    lines = "".join(f"{json.dumps(norm(number))}\n" for number in range(count))
    (folder / videonorms.FILE).write_text(lines)
    return VIDEONORMS.read(folder, "")


def test_a_constant_place_scores_82_on_the_robot_set(shared_data: Path) -> None:
    """Nine of eleven right actions stand first in the dataset; on the full split the best place scores 25.3."""
    targets = EGONORMIA.read(shared_data / "egonormia/ood_robot.json", "")
    figures = EGONORMIA.figures(targets, best_constant(targets))
    assert [round(figures[name].value, 1) for name in ("both", "action", "justification")] == [81.8] * 3
    sensible = [target for target in targets if target.task == "sensible"]
    by_place = [sum(place in one.right for one in sensible) for place in range(5)]
    assert max(by_place) / 11 >= figures["sensible"].value / 100 > 0


def test_uniform_choice_is_computed(shared_data: Path) -> None:
    targets = EGOGAPBENCH.read(shared_data / "egogapbench", "default")
    figures = uniform(EGOGAPBENCH, targets)
    assert [round(figure.value, 1) for figure in figures.values()] == [30.1, 33.3, 25.0, 30.1, 30.2, 50.0, 25.0]
    assert str(figures["n3"]) == "33.3"  # exact: without an interval
    targets = EGONORMIA.read(shared_data / "egonormia/ood_robot.json", "")
    figures = uniform(EGONORMIA, targets)
    assert [figures[name].value for name in ("both", "action", "justification")] == pytest.approx([4, 20, 20])


def test_always_adherence_by_hand(tmp_path: Path) -> None:
    targets = norms(tmp_path, 8)  # six adhere and two violate
    found = report(VIDEONORMS, targets, PredictionFile(predictions={}, unknown=(), unusable=()))
    always = found.controls["always adherence"]
    assert always["f1_adherence"].value == pytest.approx(1200 / 14)
    assert (always["f1_violation"].value, always["norm"].count) == (0.0, 0)
    assert 0 < found.controls["prior"]["macro_f1"].value < 100
    assert to_plain(found)["controls"]["always adherence"]["f1_violation"] == 0.0


def test_the_most_frequent_answer_by_hand(tmp_path: Path) -> None:
    lines = [segment(number) for number in range(24)] + [{**segment(24), "id": "more"}]  # one more error
    (tmp_path / hsri.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    targets = HSRI.read(tmp_path, "")
    figures = HSRI.figures(targets, most_frequent(targets))
    assert figures["error3_accuracy"].value == pytest.approx(100 * 9 / 25)
    assert figures["error2_accuracy"].value == pytest.approx(100 * 16 / 25)  # most are no error
    assert figures["attributes_exact"].value > 0


def test_no_control_sees_a_question_s_own_answer(tmp_path: Path) -> None:
    """Turning a choice's right place about changes nothing of what is drawn for it."""
    targets = HSRI.read(hsri_folder(tmp_path), "")
    choices = [target for target in targets if target.task in hsri.CHOICES]
    turned = [
        Target(id=one.id, task=one.task, group=one.group, options=5, right=((one.right[0] + 1) % 5,)) for one in choices
    ]
    assert prior(choices) == prior(turned)
