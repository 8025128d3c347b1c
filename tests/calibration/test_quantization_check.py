"""Verdicts by interval, and examples drawn by distance."""

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration.example_set import draw_diverse
from calibration.quantization_check import ComparedUnit, ModelAnswer, Result, measure_pair
from norm_core.evaluation.proportions import trials_to_tell, wilson_interval
from norm_core.records.flag import Polarity
from norm_core.records.outcome import Outcome

ANSWERS = ("error", "competence", "ordinary")


def unit(*probabilities: tuple[float, ...], seconds: tuple[float, float] = (2.0, 1.0)) -> ComparedUnit:
    first, second = (
        ModelAnswer(outcome=Outcome.ANSWERED, reason="", probabilities=each, seconds=time_s)
        for each, time_s in zip(probabilities, seconds, strict=True)
    )
    return ComparedUnit(bag="b", unit_id="u", words="w", polarity=None, replies=(first, second))


SAME = unit((0.2, 0.1, 0.7), (0.2, 0.1, 0.7))
FLIPPED = unit((0.5, 0.3, 0.2), (0.25, 0.5, 0.25))


@pytest.mark.parametrize(
    ("flips", "equal", "result", "missing"),
    [
        (0, 73, Result.MET, None),
        (0, 72, Result.CANNOT_TELL, 1),
        (0, 1, Result.CANNOT_TELL, 72),
        (1, 19, Result.CANNOT_TELL, None),  # exactly the tolerance
        (20, 20, Result.NOT_MET, None),
    ],
)
def test_the_interval_decides(flips: int, equal: int, result: Result, missing: int | None) -> None:
    verdict = measure_pair([FLIPPED] * flips + [SAME] * equal, ANSWERS, 0.05, labelled=False).verdict
    assert (verdict.result, verdict.units_missing) == (result, missing)


def test_figures_of_a_pair() -> None:
    figures = measure_pair([SAME, FLIPPED], ANSWERS, 0.05, labelled=False)
    assert figures.shift is not None
    assert figures.shift.most == 0.25
    assert figures.shift.mean == pytest.approx((0.25 + 0.2 + 0.05) / 6)
    divergence = 0.5 * math.log(2) + 0.3 * math.log(0.6) + 0.2 * math.log(0.8)
    assert figures.shift.divergence == pytest.approx(divergence / 2)
    assert [flip.answers for flip in figures.flips] == [("error", "competence")]
    assert measure_pair([SAME] * 4, ANSWERS, 0.05, labelled=False).speed.value == 2  # type: ignore[union-attr]


def test_beside_the_accuracy_stands_that_of_the_commonest_label() -> None:
    units = [SAME, FLIPPED, replace(SAME, polarity=Polarity.ERROR)]
    figures = measure_pair(units, ANSWERS, 0.05, labelled=True)
    assert figures.calibration is not None
    assert [one.accuracy for one in figures.calibration] == [pytest.approx(1 / 3)] * 2
    assert figures.commonest == pytest.approx(2 / 3)


def test_the_number_of_trials_is_the_least_that_decides() -> None:
    for share, limit in ((0.0, 0.05), (0.02, 0.05), (0.2, 0.1)):
        needed = trials_to_tell(share, limit)
        assert needed is not None
        for number, decides in ((needed, True), (needed - 1, False)):
            low, high = wilson_interval(share * number, number)
            assert bool(low > limit or high <= limit) is decides


def test_examples_are_far_from_each_other_and_distinct() -> None:
    rows = np.array([[0.0], [0.1], [10.0], [10.0], [5.0]], np.float32)
    for seed in range(5):
        chosen = draw_diverse(rows, 3, seed)
        assert {round(float(rows[place, 0])) for place in chosen} == {0, 5, 10}
    assert len(draw_diverse(rows, 5, 0)) == 4  # two rows are equal
    assert 4 not in draw_diverse(rows, 5, 0, lambda place: place != 4)
    assert draw_diverse(rows[:0], 5, 0) == []
