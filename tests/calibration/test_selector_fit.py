"""The coverage of a selector's sets, fitted on labelled choices."""

from action_selector.choose.abstain import select_calibrated_set
from calibration.selector_fit import coverage_for


def test_calibrated_coverage_holds_the_right_answer_often_enough() -> None:
    cases = [{0: 0.9, 1: 0.1}] * 7 + [{0: 0.6, 1: 0.4}] * 3
    answers = [0] * 7 + [1] * 3
    mass = coverage_for(cases, answers, 0.9)
    assert sum(a in select_calibrated_set(p, mass) for p, a in zip(cases, answers, strict=True)) == 10
    low = coverage_for(cases, answers, 0.5)
    assert [len(select_calibrated_set(p, low)) for p in cases] == [1] * 10
    assert coverage_for(cases, answers, 0.99) == 1  # ten cases cannot bear that out
