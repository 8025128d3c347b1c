"""The fit of a judge: a known temperature comes back, and chance weighs nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.reference_judge.scales import CLASSES, AnsweredUnit, fit_scales, least_within
from norm_core.records.flag import Polarity
from norm_core.records.outcome import Outcome
from norm_monitor.assessment.unit import Unit, UnitJudgement
from norm_monitor.assessment.unit_model import UnitReading
from norm_monitor.assessment.weighing import weigh

COUNT = 1_500


def probabilities(ratios: np.ndarray) -> np.ndarray:
    shares = np.exp(np.hstack([ratios, np.zeros((len(ratios), 1))]))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def units(*, of_judge: float, of_facts: float, overstated: float = 1.0) -> list[AnsweredUnit]:
    """Units whose labels are drawn from what the judge and the facts know; the judge overstates its log ratios."""
    random = np.random.default_rng(0)
    judge, facts = random.normal(0, 1.5, (2, COUNT, 2))
    likely = probabilities(of_judge * judge + of_facts * facts)
    stated = probabilities(overstated * judge)
    return [
        AnsweredUnit(
            polarity=CLASSES[random.choice(3, p=likely[place])],
            judge=(float(stated[place, 0]), float(stated[place, 1]), float(stated[place, 2])),
            facts=(float(facts[place, 0]), float(facts[place, 1])),
        )
        for place in range(COUNT)
    ]


def test_a_known_temperature_is_recovered() -> None:
    assert fit_scales(units(of_judge=1, of_facts=0, overstated=3))[0] == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize(("of_judge", "low", "high"), [(1, 0.75, 1.25), (0, 0, 0.05), (-1, 0, 0.05)])
def test_a_judge_weighs_by_what_it_knows(of_judge: float, low: float, high: float) -> None:
    temperature, weight = fit_scales(units(of_judge=of_judge, of_facts=1))
    assert low <= weight / temperature < high


def test_a_few_right_answers_do_not_decide_alone() -> None:
    found = [
        AnsweredUnit(
            polarity=polarity,
            judge=(0.9, 0.05, 0.05) if polarity else (0.05, 0.05, 0.9),
            facts=(0.0, 0.0),
        )
        for _ in range(20)
        for polarity in (Polarity.ERROR, None)
    ]
    temperature, weight = fit_scales(found)
    assert weight < 2
    assert temperature > 0.3


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
