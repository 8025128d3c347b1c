"""An option is read from a text strictly, then leniently, otherwise not at all; a refusal is told from an answer."""

import pytest

from norm_core.engines.options import is_refusal, read_option

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
def test_a_refusal_is_told(text: str, refused: bool) -> None:
    assert is_refusal(text) is refused
