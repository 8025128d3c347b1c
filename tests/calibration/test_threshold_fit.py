"""Thresholds of a site: their target holds on sessions that were not used, and bad labels are refused."""

from dataclasses import replace

import pytest

from calibration.session_flags import Bars, LabelledError, LabelledSession, RaisedError, count_session
from calibration.threshold_fit import ThresholdTarget, fit_thresholds
from norm_core.records.flag import Attribute
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from tests.calibration.bound_coverage import rate_coverage, share_coverage
from tests.calibration.threshold_sessions import EMOTIONS, ENGAGEMENT, generated, true_precision, true_rate

TWO_AN_HOUR = ThresholdTarget(false_errors_per_hour=2)
BEFORE = Bars(rest=0.5)
SITES = 8


def error(at_s: float, *attributes: Attribute) -> LabelledError:
    return LabelledError(onset_ns=round(at_s * NS_PER_S), attributes=attributes)


def raised(at_s: float, probability: float, *attributes: Attribute) -> RaisedError:
    return RaisedError(onset_ns=round(at_s * NS_PER_S), probability=probability, attributes=attributes)


def session(errors: tuple[LabelledError, ...], flags: tuple[RaisedError, ...], name: str = "s") -> LabelledSession:
    return LabelledSession(name=name, hours=0.5, errors=errors, raised=flags)


@pytest.mark.parametrize("uneven", [0.0, 1.0])
def test_the_rate_holds_at_nearly_all_sites(uneven: float) -> None:
    fits = [fit_thresholds(generated(40, seed, uneven=uneven), TWO_AN_HOUR, BEFORE) for seed in range(SITES)]
    chosen = [fit.chosen for fit in fits if fit.chosen]
    assert len(chosen) == SITES
    missed = sum(true_rate(one.bars) > 2 for one in chosen)
    assert missed <= 1  # 5 % is promised
    assert sum(one.recall for one in chosen) / len(chosen) > 0.5


def test_the_precision_holds_at_nearly_all_sites() -> None:
    target = ThresholdTarget(precision=0.9)
    fits = [fit_thresholds(generated(40, seed, uneven=0.5), target, BEFORE) for seed in range(SITES)]
    chosen = [fit.chosen for fit in fits if fit.chosen]
    assert len(chosen) >= SITES // 2  # at the others the sessions are too few
    assert sum(true_precision(one.bars) < 0.9 for one in chosen) <= 1


def test_the_bound_of_the_rate_holds_where_sessions_differ() -> None:
    assert rate_coverage(8, 1, 1, 300) >= 0.95
    assert rate_coverage(6, 1, 2, 300) >= 0.95
    assert rate_coverage(6, 1, 4, 300) >= 0.9


def test_the_bound_of_precision_holds_where_sessions_differ() -> None:
    assert share_coverage(8, 0.2, 0.1, 300) >= 0.93
    assert share_coverage(8, 0.2, 0.3, 300) >= 0.9


@pytest.mark.parametrize("limit", [4.0, 40.0])
def test_thresholds_that_find_no_error_are_no_success(limit: float) -> None:
    labels = tuple(error(100 + at_s, ENGAGEMENT) for at_s in (0, 10, 20))
    false = tuple(raised(at_s, 0.99, EMOTIONS) for at_s in (500, 520, 540, 560))
    sessions = [session(labels, false, f"s{number}") for number in range(8)]
    assert fit_thresholds(sessions, ThresholdTarget(false_errors_per_hour=limit), BEFORE).chosen is None


def test_an_attribute_that_is_more_often_false_is_flagged_from_a_higher_probability() -> None:
    fit = fit_thresholds(generated(120, 3), TWO_AN_HOUR, BEFORE)
    assert fit.own == (EMOTIONS, ENGAGEMENT)
    assert fit.chosen
    assert fit.chosen.bars.of(EMOTIONS) > fit.chosen.bars.of(ENGAGEMENT)


def test_attributes_with_few_labels_share_a_threshold_that_all_sessions_test() -> None:
    few = [replace(one, errors=one.errors[:1]) for one in generated(30, 5)]
    fit = fit_thresholds(few, ThresholdTarget(false_errors_per_hour=40), BEFORE)
    assert (fit.own, fit.learning, len(fit.testing)) == ((), (), 30)
    assert fit.chosen
    assert fit.chosen.bars.by_attribute == {}


def test_a_strict_target_says_how_many_more_sessions_would_do() -> None:
    strict = ThresholdTarget(false_errors_per_hour=0.3)
    fit = fit_thresholds(generated(20, 1), strict, BEFORE)
    assert fit.chosen is None
    assert fit.more
    assert fit.more.sessions > 0
    assert fit_thresholds(generated(20 + 2 * fit.more.sessions, 1), strict, BEFORE).chosen


def test_what_is_flagged_is_counted_with_the_attributes_that_it_keeps() -> None:
    one = session((error(10, ENGAGEMENT),), (raised(10.5, 0.6, EMOTIONS, ENGAGEMENT),))
    loses_it = Bars(rest=0.5, by_attribute={ENGAGEMENT: 0.7})
    assert (count_session(one, Bars(rest=0.5)).right, count_session(one, loses_it).false) == (1, 1)
    assert count_session(one, Bars(rest=0.7)).false == 0


def test_a_flag_where_coders_disagree_is_neither_right_nor_false() -> None:
    one = replace(session((), (raised(10, 0.9, EMOTIONS), raised(60, 0.9, EMOTIONS))), contested_ns=(11 * NS_PER_S,))
    counts = count_session(one, BEFORE)
    assert (counts.false, counts.right) == (1, 0)


@pytest.mark.parametrize(
    ("sessions", "told"),
    [
        (generated(7, 0), "7 labelled sessions, and 8 are needed: code 1 more"),
        ([replace(one, errors=()) for one in generated(8, 0)], "no error is labelled"),
        ([replace(one, errors=one.errors[:2]) for one in generated(8, 0)], "16 labelled errors, and 20 are needed: 4"),
        ([replace(one, hours=0.0) for one in generated(8, 0)], "s0, s1, .*: the bag has no length"),
        ([replace(one, raised=()) for one in generated(20, 0)], "the monitor finds no error at any probability"),
    ],
)
def test_too_little_to_fit_on_is_refused_with_what_is_missing(sessions: list[LabelledSession], told: str) -> None:
    with pytest.raises(TactfulError, match=told):
        fit_thresholds(sessions, TWO_AN_HOUR, BEFORE)
