from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_monitor.context.wording import (
    clauses,
    is_backchannel,
    is_filler,
    is_question,
    question_in,
    sentences,
    tokens,
    word_count,
)


@pytest.mark.parametrize(
    ("function", "expected", "texts"),
    [
        (word_count, 0, ["", "...!?"]),
        (word_count, 2, ["Hello there", "你好吗？", "去 platform 九"]),
        (word_count, 3, ["I don't know."]),
        (is_backchannel, True, ["Mm-hm.", "okay", "Oh, I see.", "Yeah, yeah.", "嗯。", "好的", ""]),
        (is_backchannel, False, ["Okay, but where is it?", "I see a dog.", "No.", "好的我们走吧"]),
        (is_filler, True, ["Um,", "Let me see.", "One moment, please.", "Just a second.", "请稍等"]),
        (is_filler, False, ["", "The museum opens at nine.", "One ticket costs five euros and a child two."]),
        (is_question, True, ["where is the exit", "And you?", "Well, can I go now", "洗手间在哪里", "是吗"]),
        (is_question, False, ["", "I know where it is.", "Thank you.", "我在这里"]),
        (question_in, "Where do I pay?", ["Hi. How are you? I came by bus. Where do I pay? Thanks."]),
        (clauses, ("See you", "good night."), ["See you, and good night."]),
        (clauses, (), ["No commas here."]),
    ],
)
def test_wording_in_both_languages(function: Callable[[str], Any], expected: Any, texts: list[str]) -> None:
    assert [function(text) for text in texts] == [expected] * len(texts)


@given(st.text())
def test_sentences_lose_no_word_and_hold_one_each(text: str) -> None:
    parts = sentences(text)
    assert [token for part in parts for token in tokens(part)] == [*tokens(text)]
    assert all(tokens(part) for part in parts)
