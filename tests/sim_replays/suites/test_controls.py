"""Controls: what is scored without looking."""

import json
from pathlib import Path

import pytest

from norm_core.runtime.config import ConfigError, check_config
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from sim_replays.suites.hsri import SUITE as HSRI
from sim_replays.suites.report import Published, PublishedTable, published_results, report, to_plain
from sim_replays.suites.suite import OURS, suite_called
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


def tables_of(suite: str) -> tuple[PublishedTable, ...]:
    paper = published_results(suite_called(suite))
    assert paper
    return paper.tables


@pytest.mark.parametrize("suite", OURS)
def test_the_tables_have_the_suite_s_columns(suite: str) -> None:
    for table in tables_of(suite):
        # HSRI is also reported in unit form, which no paper has.
        columns = tuple(name for name in suite_called(suite).columns if not name.startswith("units_"))
        assert table.columns == columns
        assert " table" in table.source
        assert table.rows


def test_rows_agree_with_themselves() -> None:
    for values in tables_of("egogapbench")[0].rows.values():
        assert sum(values[place] for place in (2, 5, 6)) == pytest.approx(100, abs=0.35)
    assert [len(table.rows) for table in tables_of("egonormia")] == [33, 33]
    for table in tables_of("egonormia"):
        assert all(both <= min(action, why) + 0.05 for both, action, why, _ in table.rows.values())
    for name, row in tables_of("videonorms")[0].rows.items():
        # The paper's own figure for US Intern3-VL is 0.45 above that mean.
        assert row[2] == pytest.approx((row[0] + row[1]) / 2, abs=0.5 if name == "US: Intern3-VL" else 0.11)
        assert row[5] == pytest.approx((row[3] + row[4]) / 2, abs=0.11)


def test_hsri_has_every_model_and_the_human() -> None:
    (table,) = tables_of("hsri")
    assert len(table.rows) == 18
    assert table.cells("(L+V) o1", ("rationale", "nothing"))[0] == "44 ± 10"
    assert table.cells("Human", ("pre",)) == ["77"]
    for row in table.rows.values():
        assert row[4] <= row[6]  # a set that is exact is also partly right


def test_a_broken_table_is_told() -> None:
    plain = {"columns": ["a"], "tables": [{"source": "s", "rows": {"x": [1, 2]}}]}
    with pytest.raises(ConfigError, match="x has 2 values for 1 columns"):
        check_config(Published, plain, "here")
