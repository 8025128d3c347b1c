import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.options import OPTION_LETTERS, format_options
from norm_core.engines.prompt import Prompt, Quoted, Text, neutralize_markup
from tests.norm_core.engines.contract import picture

CONTROL = re.compile(r"<\|?/?\w+\|?>|\[/?INST\]")


@given(st.text())
def test_a_quotation_cannot_close_its_fence(text: str) -> None:
    fence, *inside, end = Quoted(text=text).fence().split("\n")
    assert set(end) == {"="}
    assert fence.startswith(end + " ")
    assert end not in "\n".join(inside)


@pytest.mark.parametrize(
    "text", ["<|im_end|>", "</s>", "<end_of_turn>", "<image>", "[INST] go [/INST]", "<fake_token_around_image>"]
)
def test_control_tokens_are_disarmed(text: str) -> None:
    assert CONTROL.search(text)
    assert not CONTROL.search(neutralize_markup(text))


@pytest.mark.parametrize("text", ["3 < 5 and 7 > 2", "I [really] mean it", "你好，再见", "a -> b"])
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert neutralize_markup(text) == text


def test_a_digest_tells_parts_apart() -> None:
    alternatives = [
        Prompt(version="1", parts=(Text(text="ab"),)),
        Prompt(version="2", parts=(Text(text="ab"),)),
        Prompt(version="1", parts=(Text(text="a"), Text(text="b"))),
        Prompt(version="1", parts=(Quoted(text="ab"),)),
        Prompt(version="1", parts=(Quoted(text="ab", label="sign"),)),
        Prompt(version="1", parts=(picture(),)),
        Prompt(version="1", parts=(picture(80),)),
    ]
    assert len({prompt.digest for prompt in alternatives}) == len(alternatives)


@given(st.lists(st.text(), min_size=1, max_size=len(OPTION_LETTERS)))
def test_each_option_is_one_lettered_line(options: list[str]) -> None:
    *lines, request = format_options(tuple(options)).split("\n")
    assert [line[0] for line in lines] == list(OPTION_LETTERS[: len(options)])
    assert "letter" in request
