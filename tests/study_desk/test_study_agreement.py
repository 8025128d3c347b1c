"""Agreement: coefficients against other people's code and hand-worked tables, matching, and who is compared."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from norm_core.evaluation.agreement_coefficients import Tally
from norm_core.records.flag import Attribute
from norm_core.runtime.time import NS_PER_S
from study_desk.coding.agreement import measure_agreement
from study_desk.coding.labels import CodedSession, match, match_any
from study_desk.coding.reliability import AgreementRow
from study_desk.log.schema import MONITOR, Label
from tests.study_desk.coefficients import cohen_kappa, fleiss_kappa, krippendorff_alpha
from tests.study_session import label


def at(start_s: float, attribute: Attribute = Attribute.ENGAGEMENT, length_s: float = 1, coder: str = "A") -> Label:
    return label(start_s, coder, length_s=length_s, origin_ns=0, attribute=attribute)


def test_cohens_kappa_of_a_hand_worked_table() -> None:
    """20 and 15 agreed, 5 and 10 not: observed 0.7, expected 0.5, so 0.4."""
    units: Tally = Counter({("yes", "yes"): 20, ("no", "no"): 15, ("yes", "no"): 5, ("no", "yes"): 10})
    assert cohen_kappa(units) == pytest.approx(0.4)


def test_fleiss_kappa_of_the_table_in_his_paper_as_commonly_reprinted() -> None:
    """Fourteen coders, ten subjects, five categories: 0.210."""
    rows = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    units: Tally = Counter(tuple(str(c) for c, n in enumerate(row) for _ in range(n)) for row in rows)
    assert fleiss_kappa(units) == pytest.approx(0.20993, abs=5e-6)


def test_krippendorffs_alpha_of_his_own_example() -> None:
    """Four coders, twelve units, missing values; nominal alpha 0.743 (Krippendorff 2011)."""
    coders = (
        "1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .",
    )  # fmt: skip
    columns = zip(*(row.split() for row in coders), strict=True)
    units = Counter(tuple(None if value == "." else value for value in unit) for unit in columns)
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)


@pytest.mark.parametrize("coefficient", [cohen_kappa, fleiss_kappa, krippendorff_alpha])
def test_where_nothing_varies_agreement_is_undefined(coefficient: Callable[[Tally], float | None]) -> None:
    assert coefficient(Counter({("no", "no"): 9})) is None
    assert coefficient(Counter()) is None


def test_a_label_is_matched_with_its_like_first() -> None:
    mine = [at(1.0), at(1.2, Attribute.EMOTIONS)]
    yours = [at(1.1, Attribute.EMOTIONS), at(1.4, Attribute.KNOWLEDGE_STATE)]
    assert match(mine, yours, NS_PER_S).pairs == ((1, 0),)
    assert match_any(mine, yours, NS_PER_S).pairs == ((0, 1), (1, 0))


def sessions(number: int = 4) -> list[CodedSession]:
    chance = random.Random(3)
    found = []
    for index in range(number):
        times = [chance.uniform(0, 280) for _ in range(12)]
        labels = {
            "Ana": tuple(at(t, coder="Ana") for t in times),
            "Bo": tuple(at(t + chance.choice((0.2, 0.8, 4)), coder="Bo") for t in times[:10]),
            MONITOR: tuple(at(t + 1.5, coder=MONITOR) for t in times[:6]),
        }
        found.append(CodedSession(name=f"S{index}", start_ns=0, end_ns=300 * NS_PER_S, labels=labels))
    return found


def row(
    rows: tuple[AgreementRow, ...], measure: str, coders: set[str], tolerance_s: float | None = None
) -> AgreementRow:
    return next(
        r for r in rows if r.measure == measure and set(r.coders) == coders and tolerance_s in (None, r.tolerance_s)
    )


def test_event_f1_at_each_tolerance_by_hand() -> None:
    rows = measure_agreement(sessions(), resamples=50).rows
    assert row(rows, "event F1", {MONITOR, "Ana"}, 1.0).estimate.value == pytest.approx(0, abs=0.2)
    within_two = row(rows, "event F1", {MONITOR, "Ana"}, 2.0)
    assert within_two.estimate.value == pytest.approx(48 / 72)
    assert within_two.units == 48


def test_what_is_not_reviewed_yet_is_no_rejection() -> None:
    """Ana accepts 4 of 5 and has not come to the other 5; Bo accepts all 10; Cy codes alone."""
    flagged = tuple(replace(at(10 * n, coder=MONITOR), event_id=f"e{n}") for n in range(10))
    labels = {MONITOR: flagged, "Ana": flagged[:4], "Bo": flagged, "Cy": flagged}
    reviewed = {who: frozenset(f"e{n}" for n in range(number)) for who, number in (("Ana", 5), ("Bo", 10))}
    session = CodedSession(name="S", start_ns=0, end_ns=100 * NS_PER_S, labels=labels, reviewed=reviewed)
    agreement = measure_agreement([session])
    for other in (MONITOR, "Bo"):
        assert row(agreement.rows, "event F1", {other, "Ana"}, 1.0).estimate.value == pytest.approx(8 / 9)
    assert row(agreement.rows, "event F1", {"Bo", "Cy"}, 1.0).estimate.value == 1
    assert {"Ana", "Cy"} not in [set(r.coders) for r in agreement.rows]
    assert [said for said in agreement.remarks if "Ana has reviewed 5 of 10 flags of session S: only" in said]
    assert not [said for said in agreement.remarks if "Bo has reviewed" in said]


def test_frames_are_counted_by_hand() -> None:
    """Ten frames; A marks 0 to 3, B marks 2 to 5: both in one, neither in five... kappa (0.6 - 0.54)/0.46."""
    labels: dict[str, tuple[Label, ...]] = {"A": (at(0, length_s=3),), "B": (at(2, length_s=3),)}
    session = CodedSession(name="S", start_ns=0, end_ns=10 * NS_PER_S, labels=labels)
    kappa = row(measure_agreement([session]).rows, "frame-level Cohen's kappa", {"A", "B"})
    # 1 both, 2 A alone, 2 B alone, 5 neither: observed 0.6, expected 0.3 * 0.3 + 0.7 * 0.7 = 0.58
    assert kappa.units == 10
    assert kappa.estimate.value == pytest.approx((0.6 - 0.58) / 0.42)


def test_the_confusion_holds_every_event() -> None:
    labels = {"A<b>": (at(1), at(5), at(9, Attribute.EMOTIONS)), "B": (at(1.2), at(5.1, Attribute.EMOTIONS))}
    session = CodedSession(name="S", start_ns=0, end_ns=10 * NS_PER_S, labels=labels)
    (confusion,) = measure_agreement([session]).confusions
    assert confusion.categories == ("error emotions", "error engagement", "nothing")
    assert confusion.counts == ((0, 0, 1), (1, 1, 0), (0, 0, 0))
