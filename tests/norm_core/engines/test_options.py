"""An option is read from a text, strictly and then leniently, or weighed by the tokens of its letter."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.errors import UnparsedError
from norm_core.engines.options import is_refusal, read_option, weigh_letters

ACTIONS = ("Wave at the cook.", "Wait by the door.", "None of the above.")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("B", 1),
        (" (B).\n", 1),
        ("**C**", 2),
        ("B) Wait by the door.", 1),
        ("B - it is polite", 1),
        ("Answer: C", 2),
        ("The answer is **B**.", 1),
        ("Option A is rude. I choose B because option A is rude.", 1),
        ("<think>A? No, it must be C.</think>\n\nB", 1),
        ("<think>A? B? I do not", None),
        ('```json\n{"answer": "C", "rationale": "x"}\n```', 2),
        ("It is \\boxed{A}", 0),
        ("They are busy, so waiting is right.\n\nB", 1),
        ("I would wait by the door", 1),
        ("A robot should never do that.", None),
        ("I think both are fine.", None),
        ("Answer: D", None),
        ("wave at the cook or wait by the door", None),
        ("", None),
        ("答案是B", 1),
        ("I'd rule out A. I'd go with C.", 2),
        ("I'd rule out A.", None),
        ("C, not B", 2),
        ("Not A but C", None),
        ("I would pick B rather than A.", 1),
        ("The answer isn't A; the answer is C.", 2),
        ("Answer: A\nAnswer: C", None),
        ("A. It is polite.\nB. It is not.", None),
        ('{"answer": "A"} {"answer": "C"}', None),
        ("A is wrong. I choose B.", 1),
        ("A, B and C are wrong.", None),
        ("Answer: B or C", None),
        ("A) no. B) yes.", None),
        ("A. is tempting, but (B) fits.", None),
        ("I would never wave at the cook.", None),
    ],
)
def test_an_option_is_read(text: str, place: int | None) -> None:
    assert read_option(text, ACTIONS) == place


@pytest.mark.parametrize(("text", "place"), [("Yes.", 0), ("No, it is not.", 1), ("Yes and no.", None)])
def test_words_are_read_as_a_whole(text: str, place: int | None) -> None:
    assert read_option(text, ("Yes", "No")) == place


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I’m sorry, but I can’t assist with identifying people.", True),
        ("Sorry, I cannot do this.", True),
        ("I cannot assist with that request.", True),
        ("<think>hm</think> I am unable to provide an answer.", True),
        ("抱歉，我无法回答这个问题。", True),
        ("I'm sorry to keep you waiting", False),
        ("The robot says: I'm sorry, but I can't hear you.", False),
        ('{"norm": "Sorry, one cannot enter"}', False),
        ("B", False),
    ],
)
def test_refusals_are_recognized(text: str, refused: bool) -> None:
    assert is_refusal(text) is refused


@pytest.mark.parametrize("token", [" A", "▁A", "ĠA", "A\n"])
def test_a_letter_after_a_space_is_that_letter(token: str) -> None:
    assert weigh_letters([("A", math.log(0.3)), (token, math.log(0.2))], "A") == pytest.approx([math.log(0.5)])


def test_an_unreported_letter_gets_its_share_of_the_remaining_probability() -> None:
    weights = weigh_letters([("A", math.log(0.5)), ("x", math.log(0.4))], "ABC")
    assert [math.exp(weight) for weight in weights] == pytest.approx([0.5, 0.05, 0.05])


@pytest.mark.parametrize("top", [[], [("yes", -0.1)], [("Answer", -1.0), ("AB", -2.0)], [("A", -math.inf)]])
def test_without_a_letter_there_is_no_answer(top: list[tuple[str, float]]) -> None:
    with pytest.raises(UnparsedError, match="letter"):
        weigh_letters(top, "AB")


@given(
    st.dictionaries(st.text(max_size=3), st.floats(allow_nan=True), max_size=8),
    st.integers(1, 26),
)
def test_any_reported_tokens_give_weights_or_are_unparsed(told: dict[str, float], count: int) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]
    try:
        weights = weigh_letters(told.items(), letters)
    except UnparsedError:
        return
    assert len(weights) == count
    assert any(weight > -math.inf for weight in weights)
    assert not any(map(math.isnan, weights))


def test_an_unreported_letter_weighs_at_most_the_lowest_reported_token() -> None:
    weights = weigh_letters([("A", math.log(0.5)), ("x", math.log(0.01))], "AB")
    assert math.exp(weights[1]) == pytest.approx(0.01)
