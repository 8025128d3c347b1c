import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.errors import UnparsedError
from norm_core.engines.options import letter_weights


def test_told_letters_weigh_what_was_told() -> None:
    assert letter_weights([("B", math.log(0.6)), ("A", math.log(0.3))], "AB") == pytest.approx(
        [math.log(0.3), math.log(0.6)]
    )


@pytest.mark.parametrize("token", [" A", "▁A", "ĠA", "A\n"])
def test_a_letter_after_a_space_is_that_letter(token: str) -> None:
    assert letter_weights([("A", math.log(0.3)), (token, math.log(0.2))], "A") == pytest.approx([math.log(0.5)])


def test_a_letter_that_was_not_told_of_gets_its_share_of_what_is_left() -> None:
    weights = letter_weights([("A", math.log(0.5)), ("x", math.log(0.4))], "ABC")
    assert [math.exp(weight) for weight in weights] == pytest.approx([0.5, 0.05, 0.05])


def test_nor_more_than_the_least_that_was_told_of() -> None:
    weights = letter_weights([("A", math.log(0.5)), ("x", math.log(0.01))], "AB")
    assert math.exp(weights[1]) == pytest.approx(0.01)


@pytest.mark.parametrize("top", [[], [("yes", -0.1)], [("Answer", -1.0), ("AB", -2.0)], [("A", -math.inf)]])
def test_without_a_letter_there_is_no_answer(top: list[tuple[str, float]]) -> None:
    with pytest.raises(UnparsedError, match="letter"):
        letter_weights(top, "AB")


@given(
    st.dictionaries(st.text(max_size=3), st.floats(allow_nan=True), max_size=8),
    st.integers(1, 26),
)
def test_anything_a_server_tells_gives_weights_or_is_unparsed(told: dict[str, float], count: int) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]
    try:
        weights = letter_weights(told.items(), letters)
    except UnparsedError:
        return
    assert len(weights) == count
    assert any(weight > -math.inf for weight in weights)
    assert not any(map(math.isnan, weights))
