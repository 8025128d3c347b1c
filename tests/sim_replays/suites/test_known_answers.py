"""Figures that others computed: the papers, and scikit-learn 1.7.2 and statsmodels 0.15.0 on drawn answers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from norm_core.evaluation.f1 import class_f1, confusion, f1_score, macro_f1
from norm_core.evaluation.intervals import interval_of_gain
from sim_replays.runs.results.run_folder import sign_flip_p
from sim_replays.suites import egogapbench
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egogapbench import EgoGapKind
from sim_replays.suites.report import published_results
from sim_replays.suites.target import Target, intersection_over_union, uniform

RIGHT = "212212200002201202012010202111111222211210202100100121222111"
PICKED = "212212201002202102002010200111210222212210222012100221102111"
# The composition that the paper states: 618 items of three options and 382 of four, 650 direct and 350 indirect; of the
# former 400 are taken to be direct, as the published figures by directness need.
COMPOSED = (("direct", 3, 400), ("direct", 4, 250), ("indirect", 3, 218), ("indirect", 4, 132))
KINDS = (EgoGapKind.CORRECT.value, EgoGapKind.MOTOR_A.value, EgoGapKind.MOTOR_B.value, EgoGapKind.OFF_VANTAGE.value)


def test_uniform_choice_on_the_paper_s_full_set() -> None:
    targets = [
        Target(
            id=f"{directness}-{options}-{number}",
            task="eas",
            group=str(number),
            options=options,
            right=(0,),
            kinds=KINDS[:options],
            by={"directness": directness},
        )
        for directness, options, count in COMPOSED
        for number in range(count)
    ]
    figures = uniform(EGOGAPBENCH, targets)
    paper = published_results(EGOGAPBENCH)
    assert paper
    assert [figures[name].value for name in EGOGAPBENCH.columns] == pytest.approx(
        paper.tables[0].rows["Random"], abs=0.051
    )


def test_the_least_repeated_option_alone_gives_nine_in_ten_away(shared_data: Path) -> None:
    """Items of one image share what is wrong, which is why an item must know of no other."""
    items, targets = egogapbench.read(shared_data / "egogapbench")
    repeated = Counter((item.image, option) for item in items for option in item.options)
    hits = 0
    for item, target in zip(items, targets, strict=True):
        counts = [repeated[item.image, option] for option in item.options]
        hits += (counts.index(min(counts)),) == target.right
    assert hits / len(items) == pytest.approx(0.90, abs=0.005)


def test_f1_is_scikit_learn_s() -> None:
    """f1_score(average=None) and average="macro"; accuracy 75.0."""
    assert len(RIGHT) == len(PICKED) == 60
    counts = confusion([int(one) for one in RIGHT], [int(one) for one in PICKED], 3)
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
        intersection_over_union(frozenset(np.flatnonzero(one)), frozenset(np.flatnonzero(other)))
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
