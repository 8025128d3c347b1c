import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from norm_core.evaluation.f1 import class_f1, confusion, macro_f1


def of_the_paper(counts: np.ndarray) -> float:
    """The variance of macro F1 as Takahashi et al. (2022), section 3.2, write it, for r classes."""
    total, r = counts.sum(), len(counts)
    p = counts / total
    both = [p[i, :].sum() + p[:, i].sum() for i in range(r)]
    scores = [2 * p[i, i] / both[i] for i in range(r)]
    own = sum(
        scores[i] * (both[i] - 2 * p[i, i]) / both[i] ** 2 * ((both[i] - 2 * p[i, i]) / both[i] + scores[i] / 2)
        for i in range(r)
    )
    cross = sum(p[i, j] * scores[i] * scores[j] / (both[i] * both[j]) for i in range(r) for j in range(r) if i != j)
    return float(2 / r**2 * (own + cross) / total)


@given(arrays(int, (3, 3), elements=st.integers(1, 60)))
def test_macro_intervals_are_those_of_the_paper(counts: np.ndarray) -> None:
    figure = macro_f1(np.hstack([counts.astype(float), np.zeros((3, 1))]))
    reach = 100 * 1.959963984540054 * of_the_paper(counts.astype(float)) ** 0.5
    assert figure.high == pytest.approx(min(100.0, figure.value + reach))
    assert figure.low == pytest.approx(max(0.0, figure.value - reach))


def test_a_case_worked_by_hand() -> None:
    """Two right of three of class 0, three right of four of class 1, one not answered."""
    counts = confusion([0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, None], 2)
    assert class_f1(counts, 0).value == pytest.approx(100 * 2 * 2 / (3 + 2))
    assert class_f1(counts, 1).value == pytest.approx(100 * 2 * 3 / (4 + 4))
    assert macro_f1(counts).value == pytest.approx(77.5)
    # For class 0: slope at the hit 2/b - 4h/b^2, at its row and column -2h/b^2, with h = 2/7 and b = 5/7.
    hit, both = 2 / 7, 5 / 7
    variance = (2 / 7 * (2 / both - 4 * hit / both**2) ** 2 + 1 / 7 * (2 * hit / both**2) ** 2) / 7
    assert class_f1(counts, 0).low == pytest.approx(100 * (0.8 - 1.959963984540054 * variance**0.5))
