"""Words are joined as their script is written."""

import pytest

from norm_monitor.senses.speech.words import join_words


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["Good", "morning,", "Anna."], "Good morning, Anna."),
        (["早上", "好", "，", "安娜", "。"], "早上好，安娜。"),
        (["请", "说", "OK", "two", "times", "吧"], "请说OK two times吧"),
        (["ส", "วัส", "ดี"], "สวัสดี"),
    ],
)
def test_words_are_joined_as_their_script_is_written(words: list[str], text: str) -> None:
    assert join_words(words) == text
