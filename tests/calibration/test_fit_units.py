"""The operating points: what each sensitivity shows of what a fit has not seen."""

import numpy as np

from calibration.fit_units import EARLY_SURER, FittedTalk, operating_points
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Polarity
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_model import Sensitivity


def unit(polarity: Polarity | None) -> LabelledUnit:
    return LabelledUnit(
        talk=0,
        kind=UnitKind.ROBOT_TURN,
        onset_ns=0,
        facts={},
        exchange=None,
        findings=(),
        borne_out=(),
        polarity=polarity,
        attributes=(),
    )


def test_competences_are_shown_from_where_seven_of_ten_are_marked_except_at_keen() -> None:
    # From 0.8 on all four are competences; from 0.3 on 16 of 24 are, which has the higher F1.
    sure = [unit(Polarity.COMPETENCE)] * 4
    likely = [unit(Polarity.COMPETENCE)] * 12 + [unit(None)] * 8
    chances = np.array([(0.0, 0.8)] * len(sure) + [(0.0, 0.3)] * len(likely))
    talks = [FittedTalk(writer="w", harmless=True, hours=1.0)]
    points = operating_points([*sure, *likely], chances, np.zeros_like(chances), talks)
    assert points[Sensitivity.QUIET].competence > 0.3
    assert points[Sensitivity.BALANCED].competence > 0.3
    assert points[Sensitivity.KEEN].competence <= 0.3


def test_where_nothing_is_marked_so_often_the_best_f1_decides() -> None:
    units = [unit(Polarity.COMPETENCE)] * 5 + [unit(None)] * 5
    chances = np.array([(0.0, 0.5)] * 10)
    points = operating_points(
        units, chances, np.zeros_like(chances), [FittedTalk(writer="w", harmless=True, hours=1.0)]
    )
    assert points[Sensitivity.BALANCED].competence <= 0.5


def test_an_error_counts_within_the_budget_from_the_moment_at_which_it_is_flagged() -> None:
    units = [unit(None)] * 30
    late = np.array([(0.4, 0.0)] * 30)
    early = np.array([(0.9, 0.0)] * 30)
    talks = [FittedTalk(writer="w", harmless=True, hours=1.0)]
    assert operating_points(units, late, np.zeros_like(late), talks)[Sensitivity.KEEN].error <= 0.42
    point = operating_points(units, late, early, talks)[Sensitivity.KEEN]
    assert point.error + EARLY_SURER > 0.9
    assert point.false_errors_per_hour == 0
