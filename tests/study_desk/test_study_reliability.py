"""Agreement of rotating coders: coefficients against published examples and other people's code, rows and text."""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.evaluation.agreement_coefficients import (
    Tally,
    UnitizingCounts,
    unitizing_counts,
)
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.flag import Severity
from norm_core.runtime.time import NS_PER_S
from study_desk.coding.agreement import Agreement, measure_agreement
from study_desk.coding.labels import NO, YES, CodedSession, frames_of
from study_desk.coding.reliability import (
    AC1,
    ANY_TWO,
    ICC_ANY,
    AgreementRow,
    summed,
)
from study_desk.log.schema import MONITOR
from tests.study_desk.coefficients import (
    cohen_kappa,
    gwet_ac1,
    icc_one_way,
    icc_two_way,
    krippendorff_alpha,
    unitizing_alpha,
    weighted_kappa,
)
from tests.study_session import label

# Shrout and Fleiss (1979), table 2: six targets, four judges.
SHROUT_FLEISS = ((9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7))
CODERS = ("C-1", "C-2", "C-3")
SCALE = [severity.value for severity in Severity]

MISSING = st.lists(st.tuples(*[st.sampled_from(["a", "b", None])] * 3), min_size=2, max_size=40)


def test_icc_of_the_table_of_shrout_and_fleiss() -> None:
    assert icc_one_way(SHROUT_FLEISS) == pytest.approx(0.17, abs=5e-3)
    assert icc_two_way(SHROUT_FLEISS) == pytest.approx(0.29, abs=5e-3)


@pytest.mark.parametrize(
    ("measure", "coefficient"),
    [
        ("frame-level Cohen's kappa", cohen_kappa),
        ("frame-level Krippendorff's alpha", krippendorff_alpha),
        (AC1, lambda units: gwet_ac1(units, (YES, NO))),
    ],
)
def test_an_interval_is_that_of_each_resample_computed_alone(
    measure: str, coefficient: Callable[[Tally], float | None]
) -> None:
    pair, sessions = ("C-1", "C-2"), [session for session in rotating(12) if {"C-1", "C-2"} <= session.labels.keys()]
    agreement = measure_agreement(sessions, resamples=300, seed=4)
    row = next(r for r in agreement.rows if (r.measure, r.coders, r.attribute) == (measure, pair, "engagement"))
    frames = [frames_of(session, pair, "error", "engagement", 1) for session in sessions]
    rng = random.Random(4)
    drawn = [coefficient(summed(rng.choices(frames, k=len(frames)))) for _ in range(300)]
    low, high = percentile_interval([value for value in drawn if value is not None])
    assert row.estimate.value == pytest.approx(coefficient(summed(frames)), abs=1e-12)
    assert [row.estimate.low, row.estimate.high] == pytest.approx([low, high], abs=1e-12)


def test_ac1_of_a_table_whose_kappa_is_a_paradox() -> None:
    """118 and 0 agreed, 5 and 2 not: observed 118/125, prevalence 243/250, so AC1 is 0.9408 and kappa below 0."""
    units: Tally = Counter({("+", "+"): 118, ("+", "-"): 5, ("-", "+"): 2})
    expected = 2 * 243 / 250 * 7 / 250
    assert gwet_ac1(units, ("+", "-")) == pytest.approx((118 / 125 - expected) / (1 - expected))


def test_weighted_kappa_of_a_hand_worked_table() -> None:
    """Distances 0, 0, 1 and 2: observed 3/4. Expected: the mean distance of each rating with each."""
    units: Tally = Counter([("info", "info"), ("major", "major"), ("minor", "major"), ("info", "major")])
    a, b = (0, 2, 1, 0), (0, 2, 2, 2)
    expected = sum(abs(x - y) for x in a for y in b) / 16
    assert weighted_kappa(units, SCALE) == pytest.approx(1 - (3 / 4) / expected)


def kripp_2004() -> tuple[UnitizingCounts, UnitizingCounts]:
    """The example of Krippendorff (2004, p. 254), times less 150, for his categories c and k."""
    units = {
        "c": ([(225, 295), (370, 400)], [(220, 300), (355, 375), (400, 420)]),
        "k": ([(180, 240), (300, 350)],) * 2,
    }
    counts = [
        unitizing_counts(300, [[(s - 150, e - 150) for s, e in coder] for coder in kind]) for kind in units.values()
    ]
    assert counts[0]
    assert counts[1]
    return counts[0], counts[1]


def test_unitizing_alpha_of_krippendorffs_example() -> None:
    """As DKPro Statistics has it: 0.7286 for c, 1 for k, and 0.8591 within 0.0005 for both."""
    c, k = kripp_2004()
    assert unitizing_alpha([[c]]) == pytest.approx(0.7286, abs=1e-4)
    assert unitizing_alpha([[k]]) == 1
    assert unitizing_alpha([[c], [k]]) == pytest.approx(0.8591, abs=5e-4)


def unit_lists(rng: random.Random, length: int) -> list[tuple[int, int]]:
    cuts = sorted(rng.sample(range(length + 1), 2 * rng.randint(0, 3)))
    return list(zip(cuts[::2], cuts[1::2], strict=True))


def by_definition(length: int, coders: list[list[tuple[int, int]]]) -> float | None:
    """Krippendorff (1995), written out: every section of a coder with every section of another."""
    number, sections = len(coders), []
    for units in coders:
        edges = [0, *(edge for unit in units for edge in unit), length]
        cut = [(edges[i], edges[i + 1] - edges[i], i % 2) for i in range(len(edges) - 1)]
        sections.append([section for section in cut if section[1]])
    observed = 0
    for i, mine in enumerate(sections):
        for j, yours in enumerate(sections):
            for b, n, w in mine if i != j else ():
                for c, m, v in yours:
                    if w and v and -n < b - c < m:
                        observed += (b - c) ** 2 + (b + n - c - m) ** 2
                    elif w and not v and m - n >= b - c >= 0:
                        observed += n**2
                    elif v and not w and n - m >= c - b >= 0:
                        observed += m**2
    units_n = [n for each in sections for _, n, w in each if w]
    gaps = [n for each in sections for _, n, w in each if not w]
    expected = sum(
        (len(units_n) - 1) / 3 * (2 * n**3 - 3 * n**2 + n) + n**2 * sum(g - n + 1 for g in gaps if g >= n)
        for n in units_n
    )
    positions = number * length
    d_o = observed / (number * (number - 1) * length**2)
    d_e = 2 / length * expected / (positions * (positions - 1) - sum(n * (n - 1) for n in units_n))
    return 1 - d_o / d_e if d_e else None


@given(st.integers(0, 10**6), st.integers(2, 4))
@settings(max_examples=150, deadline=None)
def test_unitizing_alpha_is_that_of_its_definition(seed: int, number: int) -> None:
    rng = random.Random(seed)
    coders = [unit_lists(rng, 40) for _ in range(number)]
    counts = unitizing_counts(40, coders)
    assert counts
    ours, defined = unitizing_alpha([[counts]]), by_definition(40, coders)
    assert ours == (None if defined is None else pytest.approx(defined, rel=1e-9, abs=1e-9))


@given(MISSING)
@settings(max_examples=80, deadline=None)
def test_alpha_with_missing_coders_is_that_of_krippendorff(units: list[tuple[str | None, ...]]) -> None:
    package = pytest.importorskip("krippendorff", reason="krippendorff is not installed (it is in the test group)")
    ours = krippendorff_alpha(Counter(units))
    compared = [value for unit in units if sum(v is not None for v in unit) > 1 for value in unit if value]
    if len(set(compared)) < 2:
        assert ours is None
        return
    data = [[float("nan") if u[c] is None else "ab".index(str(u[c])) for u in units] for c in range(3)]
    assert ours == pytest.approx(package.alpha(data, level_of_measurement="nominal"), abs=1e-9)


def rotating(number: int = 6) -> list[CodedSession]:
    """Each session is coded by two of three, in turn. Sessions alternate between two conditions."""
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
        condition = ("quiet", "chatty")[index % 2]
        sessions.append(
            CodedSession(name=f"S{index}", start_ns=0, end_ns=100 * NS_PER_S, labels=labels, condition=condition)
        )
    return sessions


def found(agreement: Agreement, measure: str, *, condition: str = "", attribute: str = "engagement") -> AgreementRow:
    (row,) = [
        row
        for row in agreement.rows
        if (row.measure, row.coders, row.condition, row.attribute) == (measure, CODERS, condition, attribute)
    ]
    return row


def marks(session: CodedSession, coder: str) -> list[str | None]:
    """Frames of a second, written out once more."""
    if coder not in session.labels:
        return [None] * 100
    spans = [(one.start_ns / 1e9, one.end_ns / 1e9) for one in session.labels[coder]]
    return [YES if any(a < frame + 1 and b > frame for a, b in spans) else NO for frame in range(100)]


@pytest.mark.parametrize("condition", ["", "quiet", "chatty"])
def test_rotating_pairs_have_one_alpha_over_all_coders(condition: str) -> None:
    package = pytest.importorskip("krippendorff", reason="krippendorff is not installed (it is in the test group)")
    sessions = [s for s in rotating() if condition in ("", s.condition)]
    data = [[{YES: 1.0, NO: 0.0}.get(str(m), float("nan")) for s in sessions for m in marks(s, c)] for c in CODERS]
    expected = package.alpha(data, level_of_measurement="nominal")
    row = found(measure_agreement(rotating(), resamples=20), ANY_TWO, condition=condition)
    assert row.estimate.value == pytest.approx(expected, abs=1e-9)
    assert row.units == 100 * len(sessions)
    assert row.estimate.low is not None


def test_a_session_that_nobody_coded_is_not_counted() -> None:
    uncoded = CodedSession(name="X", start_ns=0, end_ns=100 * NS_PER_S, labels={MONITOR: ()}, condition="quiet")
    agreement = measure_agreement([*rotating(), uncoded], resamples=5)
    assert (agreement.sessions, agreement.conditions) == (6, {"chatty": 3, "quiet": 3})
    assert agreement.minutes == pytest.approx(10)
    assert "1 session without a coding by a human left out: X" in agreement.remarks


def test_counts_by_session_give_the_icc_of_all_coders() -> None:
    counts = [[len(labels) for labels in session.labels.values()] for session in rotating()]
    assert found(measure_agreement(rotating(), resamples=5), ICC_ANY).estimate.value == icc_one_way(counts)


def test_reviewers_of_flags_do_not_enter_the_alpha_of_coders() -> None:
    sessions = rotating()
    first = sessions[0]
    flagged = {**first.labels, MONITOR: (), "R": ()}
    sessions[0] = CodedSession(
        name="S0", start_ns=0, end_ns=first.end_ns, labels=flagged, reviewed={"R": frozenset()}, condition="quiet"
    )
    agreement = measure_agreement(sessions, resamples=5)
    assert (
        found(agreement, ANY_TWO).estimate.value
        == found(measure_agreement(rotating(), resamples=5), ANY_TWO).estimate.value
    )
