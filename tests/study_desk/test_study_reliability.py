"""Agreement of rotating coders: coefficients against published examples and other people's code, rows and text."""

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from norm_core.records.flag import Attribute, Severity
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.schema import MONITOR, Label
from scoring.agreement_coefficients import (
    Array,
    Tally,
    cohen_kappas,
    krippendorff_alphas,
    number_or_none,
    weighted_kappas,
)
from scoring.intervals import percentile_interval
from study_desk.coding.agreement import Agreement, measure_agreement
from study_desk.coding.labels import NO, YES, CodedSession, count_frames, match, match_any
from study_desk.coding.reliability import (
    ALPHA,
    ANY_TWO,
    EVENT_F1,
    EVENT_KAPPA,
    KAPPA,
    SEVERITY,
    AgreementRow,
)
from tests.study_session import label

CODERS = ("C-1", "C-2", "C-3")
SCALE = [severity.value for severity in Severity]


def _for_one_sample(coefficients: Callable[..., Array]) -> Callable[..., float | None]:
    """The coefficient of one sample; the product computes many at once."""

    def coefficient(units: Tally, *categories: Sequence[str]) -> float | None:
        return number_or_none(coefficients({unit: np.array([float(units[unit])]) for unit in units}, *categories))

    return coefficient


cohen_kappa, krippendorff_alpha = _for_one_sample(cohen_kappas), _for_one_sample(krippendorff_alphas)
weighted_kappa = _for_one_sample(weighted_kappas)


@pytest.mark.parametrize(
    ("measure", "coefficient"),
    [
        (KAPPA, cohen_kappa),
        (ALPHA, krippendorff_alpha),
    ],
)
def test_an_interval_equals_that_of_resamples_computed_one_by_one(
    measure: str, coefficient: Callable[[Tally], float | None]
) -> None:
    pair, sessions = (
        ("C-1", "C-2"),
        [session for session in make_rotating_sessions(18) if {"C-1", "C-2"} <= session.labels.keys()],
    )
    agreement = measure_agreement(sessions, resamples=300, seed=4)
    row = next(r for r in agreement.rows if (r.measure, r.coders, r.attribute) == (measure, pair, "engagement"))
    frames = [count_frames(session, pair, "error", "engagement", 1) for session in sessions]
    rng = random.Random(4)
    drawn = [coefficient(sum(rng.choices(frames, k=len(frames)), Tally())) for _ in range(300)]
    low, high = percentile_interval([value for value in drawn if value is not None])
    assert row.estimate.value == pytest.approx(coefficient(sum(frames, Tally())), abs=1e-12)
    assert [row.estimate.low, row.estimate.high] == pytest.approx([low, high], abs=1e-12)


def test_weighted_kappa_of_a_hand_worked_table() -> None:
    """Distances 0, 0, 1 and 2: observed 3/4. Expected: the mean distance of each rating with each."""
    units: Tally = Counter([("info", "info"), ("major", "major"), ("minor", "major"), ("info", "major")])
    a, b = (0, 2, 1, 0), (0, 2, 2, 2)
    expected = sum(abs(x - y) for x in a for y in b) / 16
    assert weighted_kappa(units, SCALE) == pytest.approx(1 - (3 / 4) / expected)


def make_rotating_sessions(number: int = 6) -> list[CodedSession]:
    """Each session is coded by two of three, in turn."""
    rng = random.Random(1)
    sessions = []
    for index in range(number):
        times = sorted(rng.uniform(0, 95) for _ in range(6))
        labels = {
            coder: tuple(
                label(t + rng.choice((0, 0.4, 3)), coder, length_s=2, origin_ns=0, severity=rng.choice(list(Severity)))
                for t in times
            )
            for coder in CODERS
            if coder != CODERS[index % 3]
        }
        sessions.append(CodedSession(name=f"S{index}", start_ns=0, end_ns=100 * NS_PER_S, labels=labels))
    return sessions


def find_row_of_all(agreement: Agreement, measure: str, attribute: str = "engagement") -> AgreementRow:
    (row,) = [row for row in agreement.rows if (row.measure, row.coders, row.attribute) == (measure, CODERS, attribute)]
    return row


def mark_frames(session: CodedSession, coder: str) -> list[str | None]:
    """Frames of a second, written out once more."""
    if coder not in session.labels:
        return [None] * 100
    spans = [(label.start_ns / 1e9, label.end_ns / 1e9) for label in session.labels[coder]]
    return [YES if any(a < frame + 1 and b > frame for a, b in spans) else NO for frame in range(100)]


def test_rotating_pairs_have_one_alpha_over_all_coders() -> None:
    package = pytest.importorskip("krippendorff", reason="krippendorff is not installed (it is in the test group)")
    data = [
        [{YES: 1.0, NO: 0.0}.get(str(m), float("nan")) for s in make_rotating_sessions() for m in mark_frames(s, c)]
        for c in CODERS
    ]
    expected = package.alpha(data, level_of_measurement="nominal")
    row = find_row_of_all(measure_agreement(make_rotating_sessions(), resamples=20), ANY_TWO)
    assert row.estimate.value == pytest.approx(expected, abs=1e-9)
    assert row.units == 600


def make_sessions_with_labels_in(number: int, sessions: int = 6) -> list[CodedSession]:
    """Sessions of two coders, of which the first few hold labels, each a half of one beside the other's."""
    labels: dict[str, tuple[Label, ...]] = {
        "A": (make_label(5), make_label(20)),
        "B": (make_label(5.5, coder="B"), make_label(20, coder="B")),
    }
    return [
        CodedSession(
            name=f"S{index}",
            start_ns=0,
            end_ns=(50 + 9 * index) * NS_PER_S,
            labels=labels if index < number else dict.fromkeys(labels, ()),
        )
        for index in range(sessions)
    ]


@pytest.mark.parametrize(("holding", "sessions"), [(1, 6), (4, 4), (4, 12), (5, 5), (5, 12)])
def test_intervals_need_five_sessions_that_hold_the_label(holding: int, sessions: int) -> None:
    """One session of six had kappa .664 [.661, .665], without a word of the third of resamples that lacked the code."""
    rows = measure_agreement(make_sessions_with_labels_in(holding, sessions), resamples=300).rows
    for measure in (KAPPA, "event F1"):
        measured = find_row(rows, measure, {"A", "B"})
        assert measured.estimate.value is not None
        assert measured.sessions == holding
        assert (measured.estimate.low is None, measured.estimate.high is None) == (holding < 5,) * 2
        assert measured.estimate.undefined == pytest.approx((1 - holding / sessions) ** sessions, abs=0.06)


def test_rows_have_the_measures_in_order() -> None:
    measures = list(dict.fromkeys(r.measure for r in measure_agreement(make_rotating_sessions(), resamples=5).rows))
    assert measures == [EVENT_KAPPA, "event F1", KAPPA, ALPHA, SEVERITY, ANY_TWO]
    tolerances = {
        r.tolerance_s for r in measure_agreement(make_rotating_sessions(), resamples=5).rows if r.measure == "event F1"
    }
    assert tolerances == {1, 2}


def test_a_session_that_nobody_coded_is_not_counted() -> None:
    uncoded = CodedSession(name="X", start_ns=0, end_ns=100 * NS_PER_S, labels={MONITOR: ()})
    agreement = measure_agreement([*make_rotating_sessions(), uncoded], resamples=5)
    assert agreement.sessions == 6
    assert agreement.minutes == pytest.approx(10)
    assert "1 session without a coding by a human left out: X" in agreement.remarks


def make_label(
    start_s: float, attribute: Attribute = Attribute.ENGAGEMENT, length_s: float = 1, coder: str = "A"
) -> Label:
    return label(start_s, coder, length_s=length_s, origin_ns=0, attribute=attribute)


def test_cohens_kappa_of_a_hand_worked_table() -> None:
    """20 and 15 agreed, 5 and 10 not: observed 0.7, expected 0.5, so 0.4."""
    units: Tally = Counter({("yes", "yes"): 20, ("no", "no"): 15, ("yes", "no"): 5, ("no", "yes"): 10})
    assert cohen_kappa(units) == pytest.approx(0.4)


def test_krippendorffs_alpha_of_his_example() -> None:
    """Four coders, twelve units, missing values; nominal alpha 0.743 (Krippendorff 2011)."""
    coders = (
        "1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .",
    )  # fmt: skip
    columns = zip(*(row.split() for row in coders), strict=True)
    units = Counter(tuple(None if value == "." else value for value in unit) for unit in columns)
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)


@pytest.mark.parametrize("coefficient", [cohen_kappa, krippendorff_alpha])
def test_agreement_without_variation_is_undefined(coefficient: Callable[[Tally], float | None]) -> None:
    assert coefficient(Counter({("no", "no"): 9})) is None
    assert coefficient(Counter()) is None


def test_labels_match_labels_of_their_kind_first() -> None:
    mine = [make_label(1.0), make_label(1.2, Attribute.EMOTIONS)]
    yours = [make_label(1.1, Attribute.EMOTIONS), make_label(1.4, Attribute.KNOWLEDGE_STATE)]
    assert match(mine, yours, NS_PER_S).pairs == ((1, 0),)
    assert match_any(mine, yours, NS_PER_S).pairs == ((0, 1), (1, 0))


def test_a_flag_of_three_attributes_agrees_with_a_code_of_one_where_attributes_do_not_count() -> None:
    named = (Attribute.EMOTIONS, Attribute.ENGAGEMENT, Attribute.USER_INTENTION)
    flag = [make_label(9.0, attribute) for attribute in named]
    labels = {MONITOR: tuple(flag), "C-1": (make_label(9.8, Attribute.ENGAGEMENT, coder="C-1"),)}
    session = CodedSession(name="S1", start_ns=0, end_ns=60 * NS_PER_S, labels=labels)
    rows = [row for row in measure_agreement([session]).rows if (row.measure, row.tolerance_s) == (EVENT_F1, 1.0)]
    figures = {(row.polarity, row.attribute): (row.estimate.value, row.units) for row in rows}
    assert figures["error", "any"] == (1.0, 1)
    assert figures["all", "all"] == (0.5, 3)  # one hit, two misses
    assert figures["error", "emotions"] == (0.0, 1)


def find_row(
    rows: tuple[AgreementRow, ...], measure: str, coders: set[str], tolerance_s: float | None = None
) -> AgreementRow:
    return next(
        r for r in rows if r.measure == measure and set(r.coders) == coders and tolerance_s in (None, r.tolerance_s)
    )


def test_event_f1_counts_onsets_within_each_tolerance() -> None:
    labels = {"A": (make_label(1), make_label(20)), "B": (make_label(2.5, coder="B"),)}
    rows = measure_agreement([CodedSession(name="S", start_ns=0, end_ns=60 * NS_PER_S, labels=labels)]).rows
    f1_by_tolerance = {row.tolerance_s: row.estimate.value for row in rows if row.measure == EVENT_F1}
    assert f1_by_tolerance == {1: 0, 2: pytest.approx(2 / 3)}


def test_frames_are_counted_by_hand() -> None:
    """Ten frames; A marks 0 to 3, B marks 2 to 5: both in one, neither in five... kappa (0.6 - 0.54)/0.46."""
    labels: dict[str, tuple[Label, ...]] = {"A": (make_label(0, length_s=3),), "B": (make_label(2, length_s=3),)}
    session = CodedSession(name="S", start_ns=0, end_ns=10 * NS_PER_S, labels=labels)
    kappa = find_row(measure_agreement([session]).rows, KAPPA, {"A", "B"})
    # 1 both, 2 A alone, 2 B alone, 5 neither: observed 0.6, expected 0.3 * 0.3 + 0.7 * 0.7 = 0.58
    assert kappa.units == 10
    assert kappa.estimate.value == pytest.approx((0.6 - 0.58) / 0.42)
