"""The fit of a judge: a known temperature comes back, chance weighs nothing, and too little is refused."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.judge_fit import CLASSES, TEMPERED, AnsweredUnit, LabelError, fit_judge, least_within
from norm_core.records.flag import Polarity
from norm_core.records.outcome import Outcome
from norm_monitor.assessment.unit import Unit, UnitJudgement
from norm_monitor.assessment.unit_model import UnitReading
from norm_monitor.assessment.weighing import weigh

COUNT = 1_500


def probabilities(ratios: np.ndarray) -> np.ndarray:
    shares = np.exp(np.hstack([ratios, np.zeros((len(ratios), 1))]))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def units(*, of_judge: float, of_facts: float, overstated: float = 1.0, writers: int = 4) -> list[AnsweredUnit]:
    """Units whose labels are drawn from what the judge and the facts know; the judge overstates its log ratios."""
    random = np.random.default_rng(0)
    judge, facts = random.normal(0, 1.5, (2, COUNT, 2))
    likely = probabilities(of_judge * judge + of_facts * facts)
    stated = probabilities(overstated * judge)
    return [
        AnsweredUnit(
            encounter=f"talk_{place % 60}",
            writer=f"writer_{place % 60 % writers}",
            polarity=CLASSES[random.choice(3, p=likely[place])],
            judge=(float(stated[place, 0]), float(stated[place, 1]), float(stated[place, 2])),
            facts=(float(facts[place, 0]), float(facts[place, 1])),
        )
        for place in range(COUNT)
    ]


def counts(found: list[AnsweredUnit]) -> Counter[Polarity | None]:
    return Counter(one.polarity for one in found)


def test_a_known_temperature_is_recovered() -> None:
    found = units(of_judge=1, of_facts=0, overstated=3)
    fit = fit_judge(found, counts(found))
    assert fit.temperature == pytest.approx(3, rel=0.15)
    assert fit.readers["judge"].log_loss < fit.readers["facts"].log_loss
    assert (fit.units, fit.left_out) == (COUNT, "writers")
    before, after = (fit.qualities[name] for name in ("none", TEMPERED))
    assert after.error < 0.05 < before.error
    assert after.log_loss < before.log_loss
    assert after.brier < fit.qualities["control: base rate"].brier


def test_a_judge_that_knows_more_is_weighed_and_adds() -> None:
    found = units(of_judge=1, of_facts=1)
    fit = fit_judge(found, counts(found))
    assert fit.weight / fit.temperature == pytest.approx(1, rel=0.25)
    assert fit.added.log_loss_interval[1] < 0
    assert fit.added.average_precision_interval[0] > 0


@pytest.mark.parametrize("of_judge", [0, -1])
def test_a_judge_of_chance_or_that_is_wrong_weighs_next_to_nothing(of_judge: float) -> None:
    found = units(of_judge=of_judge, of_facts=1)
    fit = fit_judge(found, counts(found))
    assert fit.weight / fit.temperature < 0.05
    assert fit.added.log_loss_interval[1] > -0.001


def test_a_few_right_answers_do_not_decide_alone() -> None:
    found = [
        AnsweredUnit(
            encounter=f"talk_{place % 6}",
            writer="one",
            polarity=polarity,
            judge=(0.9, 0.05, 0.05) if polarity else (0.05, 0.05, 0.9),
            facts=(0.0, 0.0),
        )
        for place in range(20)
        for polarity in (Polarity.ERROR, None)
    ]
    fit = fit_judge(found, counts(found))
    assert fit.added.log_loss_interval[1] < 0
    assert fit.weight < 2
    assert fit.temperature > 0.3


def test_a_sample_counts_as_often_as_its_class_stands_in_all() -> None:
    found = units(of_judge=1, of_facts=0)
    rare = [one for place, one in enumerate(found) if one.polarity is None or place % 5 == 0]
    balanced, natural = fit_judge(rare, counts(rare)), fit_judge(rare, counts(found))
    whole = fit_judge(found, counts(found)).readers["judge"]
    assert natural.readers["judge"].average_precision == pytest.approx(whole.average_precision, abs=0.05)
    assert balanced.readers["judge"].average_precision < whole.average_precision - 0.1


def test_one_writer_s_encounters_are_left_out_in_turn() -> None:
    found = units(of_judge=1, of_facts=1, writers=1)
    assert fit_judge(found, counts(found)).left_out == "encounters"


@pytest.mark.parametrize(
    ("left", "problem"),
    [
        (lambda unit, _: unit.polarity is Polarity.ERROR, "no ordinary unit"),
        (lambda unit, _: unit.polarity is not Polarity.ERROR, "no error"),
        (lambda unit, _: not unit.polarity, "20 are missing"),
        (
            lambda unit, labelled: not unit.polarity or unit in labelled[:17],
            r"17 labelled .* 20 are needed: 3 are missing",
        ),
        (lambda unit, _: unit.encounter in {"talk_1", "talk_2"}, "of 2 encounters, and 3 are needed"),
    ],
)
def test_too_few_labels_are_refused_with_what_is_missing(left: Callable[..., bool], problem: str) -> None:
    found = units(of_judge=1, of_facts=0, writers=1)
    labelled = [unit for unit in found if unit.polarity]
    with pytest.raises(LabelError, match=problem):
        fit_judge([unit for unit in found if left(unit, labelled)], counts(found))


@pytest.mark.parametrize("polarity", Polarity)
def test_the_monitor_weighs_as_the_fit_supposes(polarity: Polarity) -> None:
    ratio = {Polarity.ERROR: 0.3, Polarity.COMPETENCE: 0.3, polarity: 2.0}
    error, competence, _ = probabilities(np.array([list(ratio.values())]))[0]
    reading = UnitReading(odds={Polarity.ERROR: 0.5, Polarity.COMPETENCE: 0.4}, attributes=dict.fromkeys(Polarity, ()))
    judgement = UnitJudgement(
        unit=Unit.of_sighting("leaving", 0, None),
        outcome=Outcome.ANSWERED,
        probability={Polarity.ERROR: error, Polarity.COMPETENCE: competence},
    )
    stated = weigh((), judgement, 1.5, reading)
    odds = np.array([0.5, 0.4]) * np.exp(1.5 * np.array(list(ratio.values())))
    assert stated.polarity is polarity
    assert stated.probability == pytest.approx(odds[list(Polarity).index(polarity)] / (1 + odds.sum()))


@given(st.floats(-10, 10), st.floats(-10, 0), st.floats(0.01, 10))
def test_the_valley_or_the_nearer_bound_is_found(valley: float, low: float, width: float) -> None:
    found = least_within(lambda number: abs(number - valley), low, low + width)
    assert abs(found - min(max(valley, low), low + width)) < 1e-8
