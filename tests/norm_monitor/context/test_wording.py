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
    ("text", "count"),
    [("", 0), ("Hello there", 2), ("I don't know.", 3), ("你好吗？", 2), ("去 platform 九", 2), ("...!?", 0)],
)
def test_words_are_counted_in_both_languages(text: str, count: int) -> None:
    assert word_count(text) == count


@pytest.mark.parametrize("text", ["Mm-hm.", "okay", "Oh, I see.", "Yeah, yeah.", "嗯。", "好的", ""])
def test_signs_of_listening_claim_no_turn(text: str) -> None:
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["Okay, but where is it?", "I see a dog.", "No.", "好的我们走吧"])
def test_other_words_claim_the_turn(text: str) -> None:
    assert not is_backchannel(text)


@pytest.mark.parametrize("text", ["Um,", "Let me see.", "One moment, please.", "Just a second.", "请稍等"])
def test_promises_of_an_answer_are_fillers(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize("text", ["", "The museum opens at nine.", "One ticket costs five euros and a child two."])
def test_answers_are_no_fillers(text: str) -> None:
    assert not is_filler(text)


@pytest.mark.parametrize(
    "text", ["Where is it?", "where is the exit", "And you?", "Well, can I go now", "洗手间在哪里", "是吗"]
)
def test_questions_are_known_without_their_mark(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["", "I know where it is.", "Thank you.", "我在这里"])
def test_statements_ask_nothing(text: str) -> None:
    assert not is_question(text)


def test_the_last_question_is_what_was_asked() -> None:
    assert question_in("Hi. How are you? I came by bus. Where do I pay? Thanks.") == "Where do I pay?"


@given(st.text())
def test_sentences_lose_no_word_and_hold_one_each(text: str) -> None:
    parts = sentences(text)
    assert [token for part in parts for token in tokens(part)] == tokens(text)
    assert all(tokens(part) for part in parts)


def test_clauses_stand_between_commas_and_conjunctions() -> None:
    assert clauses("See you, and good night.") == ["See you", "good night."]
    assert clauses("No commas here.") == []
