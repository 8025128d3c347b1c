"""Controls, which score without looking, known answers of other scorers, and the papers' tables, typed in."""

import json
from pathlib import Path

import numpy as np
import pytest

from norm_core.runtime.config import ConfigError, check_config
from scoring.f1 import class_f1, count_confusions, f1_score, macro_f1
from scoring.intervals import interval_of_gain, sign_flip_p
from sim_replays.items.target import PredictionFile, Target, compute_iou
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.controls import choose_most_frequent, draw_by_rate, score_uniform_choice
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from sim_replays.suites.hsri import SUITE as HSRI
from sim_replays.suites.report import Published, PublishedTable, load_published_tables, make_report, report_to_plain
from sim_replays.suites.suite import OURS, find_suite
from sim_replays.suites.videonorms import SUITE as VIDEONORMS
from tests.sim_replays.requested_data import hsri_folder, norm, segment


def norms(folder: Path, count: int) -> list[Target]:
    lines = "".join(f"{json.dumps(norm(number))}\n" for number in range(count))
    (folder / videonorms.FILE).write_text(lines)
    return VIDEONORMS.read_targets(folder, "")


def test_uniform_choice_is_computed(shared_data: Path) -> None:
    targets = EGOGAPBENCH.read_targets(shared_data / "egogapbench", "default")
    figures = score_uniform_choice(EGOGAPBENCH, targets)
    assert [round(figure.value, 1) for figure in figures.values()] == [30.1, 33.3, 25.0, 30.1, 30.2, 50.0, 25.0]
    assert str(figures["n3"]) == "33.3"  # exact: without an interval
    targets = EGONORMIA.read_targets(shared_data / "egonormia/ood_robot.json", "")
    figures = score_uniform_choice(EGONORMIA, targets)
    assert [figures[name].value for name in ("both", "action", "justification")] == pytest.approx([4, 20, 20])


def test_the_most_frequent_label_by_hand(tmp_path: Path) -> None:
    targets = norms(tmp_path, 8)  # six adhere and two violate
    found = make_report(VIDEONORMS, targets, PredictionFile(predictions={}, unknown=(), unusable=()))
    always = found.controls["most frequent"]
    assert always["f1_adherence"].value == pytest.approx(1200 / 14)
    assert (always["f1_violation"].value, always["norm"].count) == (0.0, 0)
    assert 0 < found.controls["prior"]["macro_f1"].value < 100
    assert report_to_plain(found)["controls"]["most frequent"]["f1_violation"] == 0.0


def test_the_most_frequent_answer_by_hand(tmp_path: Path) -> None:
    lines = [segment(number) for number in range(24)] + [{**segment(24), "id": "more"}]  # one more error
    (tmp_path / hsri.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    targets = HSRI.read_targets(tmp_path, "")
    figures = HSRI.compute_figures(targets, choose_most_frequent(targets))
    assert figures["error3_accuracy"].value == pytest.approx(100 * 9 / 25)
    assert figures["error2_accuracy"].value == pytest.approx(100 * 16 / 25)  # most are no error
    assert figures["attributes_exact"].value > 0


def test_no_control_sees_a_question_s_own_answer(tmp_path: Path) -> None:
    """Turning a choice's right place about changes nothing of what is drawn for it."""
    targets = HSRI.read_targets(hsri_folder(tmp_path), "")
    choices = [target for target in targets if target.task in hsri.CHOICES]
    turned = [
        Target(id=one.id, task=one.task, group=one.group, options=5, right=((one.right[0] + 1) % 5,)) for one in choices
    ]
    assert draw_by_rate(choices) == draw_by_rate(turned)


def tables_of(suite: str) -> tuple[PublishedTable, ...]:
    return load_published_tables(find_suite(suite))


@pytest.mark.parametrize("suite", OURS)
def test_the_tables_have_the_suite_s_columns(suite: str) -> None:
    for number, table in enumerate(tables_of(suite)):
        assert set(table.columns) <= set(find_suite(suite).columns)
        assert number or table.columns == find_suite(suite).columns
        assert " table" in table.source
        assert table.rows


@pytest.mark.parametrize(
    ("suite", "variant", "tables"),
    [
        ("egogapbench", {"style": "default"}, ["table 1", "table 5"]),
        ("egogapbench", {"style": "exclusion"}, ["table 7"]),
        ("egogapbench", {"style": "egoplan"}, ["table 8"]),
        ("egonormia", {"setting": "video", "frames": "discrete"}, ["table 5", "table 5", "table 2", "table 7"]),
        ("egonormia", {"setting": "blind", "frames": "tiled"}, ["table 5", "table 5", "table 2"]),
    ],
)
def test_a_variant_stands_beside_its_own_rows(suite: str, variant: dict[str, str], tables: list[str]) -> None:
    published = load_published_tables(find_suite(suite), variant)
    assert [name in table.source for name, table in zip(tables, published, strict=True)] == [True] * len(tables)


def test_egogapbench_rows_add_up_to_their_overall() -> None:
    for table in tables_of("egogapbench"):
        n3, n4 = (59, 48) if "Wikimedia" in table.source else (618, 382)
        for name, row in table.rows.items():
            assert "Human" in name or row[0] == pytest.approx((n3 * row[1] + n4 * row[2]) / (n3 + n4), abs=0.11)


def test_hsri_has_every_model_and_the_human() -> None:
    (table,) = tables_of("hsri")
    assert len(table.rows) == 18
    assert table.format_cells("(L+V) o1", ("rationale", "nothing"))[0] == "44 ± 10"
    assert table.format_cells("Human", ("pre",)) == ["77"]
    for row in table.rows.values():
        assert row[4] <= row[6]  # a set that is exact is also partly right


def test_a_broken_table_is_told() -> None:
    plain = {"columns": ["a"], "tables": [{"source": "s", "rows": {"x": [1, 2]}}]}
    with pytest.raises(ConfigError, match="x has 2 values for 1 columns"):
        check_config(Published, plain, "here")


RIGHT = "212212200002201202012010202111111222211210202100100121222111"
PICKED = "212212201002202102002010200111210222212210222012100221102111"


def test_f1_is_scikit_learn_s() -> None:
    """f1_score(average=None) and average="macro"; accuracy 75.0."""
    assert len(RIGHT) == len(PICKED) == 60
    counts = count_confusions([int(one) for one in RIGHT], [int(one) for one in PICKED], 3)
    assert [class_f1(counts, place).value for place in range(3)] == pytest.approx([72.727273, 71.794872, 79.166667])
    assert macro_f1(counts).value == pytest.approx(74.562937)
    assert 100 * np.trace(counts[:, :3]) / 60 == pytest.approx(75.0)


# Twenty sets of seven, as rows of seven bits.
WANTED = """1011011 1010000 1000000 1111000 0100010 1111111 1110110 0110000 0111101 1110101
            1100101 0000001 1110111 0010100 0110010 1001010 0111111 0111111 1111000 0000010"""
FOUND = """1011011 1111000 1011100 1110011 0010010 1110010 0010110 1110000 0101101 1110001
           1000100 0010000 1011001 0011100 1010111 0110010 1001111 1111010 0110101 1100110"""


def test_sets_score_as_scikit_learn_s() -> None:
    """f1_score(average="macro"), accuracy_score, and jaccard_score(average="samples")."""
    wanted, found = (np.array([[bit == "1" for bit in row] for row in text.split()]) for text in (WANTED, FOUND))
    assert f1_score(
        (wanted & found).sum(axis=0), (wanted.sum(axis=0) + found.sum(axis=0)), 100
    ).mean() == pytest.approx(65.987902)
    assert 100 * np.mean((wanted == found).all(axis=1)) == pytest.approx(5.0)
    overlaps = [
        compute_iou(frozenset(np.flatnonzero(one)), frozenset(np.flatnonzero(other)))
        for one, other in zip(found, wanted, strict=True)
    ]
    assert 100 * np.mean(overlaps) == pytest.approx(49.380952)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (7, 2, 0.1796875), (15, 30, 0.0356978036), (0, 1, 1.0), (400, 460, 0.0441695482)],
)
def test_one_question_an_image_gives_the_exact_mcnemar_of_statsmodels(first: int, second: int, p: float) -> None:
    gains = [-1.0] * first + [1.0] * second + [0.0] * 5
    images = [str(number) for number in range(len(gains))]
    assert sign_flip_p(gains, images) == pytest.approx(p)
    assert sign_flip_p([-gain for gain in gains], images) == pytest.approx(p)


def test_questions_of_one_image_count_as_one_observation() -> None:
    """By hand: four images turn 16 ways, of which two are all on one side, however many questions each has."""
    gains, images = [1.0] * 12, [str(number // 3) for number in range(12)]
    assert sign_flip_p(gains, images) == pytest.approx(2 / 16)
    assert sign_flip_p([1.0, -1.0] * 6, [str(number // 2) for number in range(12)]) == 1.0


def test_overlaps_of_sets_are_tested_exactly_too() -> None:
    """By hand: of 1/2, 1/3 and 1/3 with any signs, the sum is as far from 0 as 1/2 in six of eight cases."""
    assert sign_flip_p([1 / 2, 1 / 3, -1 / 3], ["a", "b", "c"], 60) == pytest.approx(6 / 8)


@pytest.mark.parametrize(
    ("gains", "low", "high"),
    [
        # Agresti and Min (2005): 0.5 in each cell of the table of pairs, by hand.
        ([0.0] * 11, -0.1508, 0.1508),
        ([1.0] * 11, 0.5994, 1.0),
        ([1.0] * 3 + [0.0] * 8, -0.0434, 0.5050),
    ],
)
def test_the_interval_of_a_gain_has_a_width_at_the_border(gains: list[float], low: float, high: float) -> None:
    images = [str(number) for number in range(len(gains))]
    assert interval_of_gain(gains, images) == pytest.approx((low, high), abs=1e-3)
    # Ten questions of each image tell no more than one does.
    assert interval_of_gain(gains * 10, images * 10) == pytest.approx((low, high), abs=1e-3)
