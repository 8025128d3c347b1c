"""What only looks like an error raises none, and its true counterpart still does."""

import pytest

from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.wording import asks_to_repeat, is_remark, is_warning
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, robot, user

PRICE = "The ticket costs nineteen euros and is valid all day."
STORY = "So I was telling my sister that we could go to the lake and"


def _errors(meaning: EncoderMatcher, *parts: list[Entry], until_s: float = 14) -> dict[str, SocialFlag]:
    """Return the newest error of each cue at the end."""
    newest = {flag.event_id: flag for flag in Watched(meaning).watch(*parts, until_s=until_s)}
    kept = (flag for flag in newest.values() if flag.state is not FlagState.WITHDRAWN)
    return {flag.cue_id: flag for flag in kept if flag.polarity is Polarity.ERROR}


def _said_in_the_garden(meaning: EncoderMatcher, said: str) -> dict[str, SocialFlag]:
    return _errors(meaning, robot(0, 3, "This is the garden."), user(4, 5.5, said))


def _price_twice(meaning: EncoderMatcher, between: str) -> dict[str, SocialFlag]:
    first = (user(0, 2, "How much is a ticket?"), robot(2.6, 6, PRICE))
    return _errors(meaning, *first, user(7, 8, between), robot(8.6, 12, PRICE), until_s=18)


def _cut_in(meaning: EncoderMatcher, words: str) -> dict[str, SocialFlag]:
    return _errors(meaning, user(0, 5, STORY), robot(3, 4.5, words))


@pytest.mark.parametrize(
    "remark",
    ["Isn't it lovely?", "Who knows?", "Nice view, isn't it?", "Now where did I put my keys?", "Can you believe it?"],
)
def test_remark_needs_no_answer(meaning: EncoderMatcher, remark: str) -> None:
    assert is_remark(remark)
    assert not _said_in_the_garden(meaning, remark)


@pytest.mark.parametrize(
    "question", ["Is it open on Sunday?", "It is open today, isn't it?", "Who knows the code?", "Where is the exit?"]
)
def test_question_needs_an_answer(meaning: EncoderMatcher, question: str) -> None:
    assert not is_remark(question)
    assert "no_response" in _said_in_the_garden(meaning, question)


@pytest.mark.parametrize("request_", ["Say that again?", "How much was it?", "Sorry, how much was it?", "Once more."])
def test_repetition_on_request_is_no_error(meaning: EncoderMatcher, request_: str) -> None:
    assert asks_to_repeat(request_)
    assert "robot_repeats" not in _price_twice(meaning, request_)


@pytest.mark.parametrize("other", ["And where is the platform?", "Which tram goes there?"])
def test_repetition_without_request_is_an_error(meaning: EncoderMatcher, other: str) -> None:
    assert not asks_to_repeat(other)
    assert "robot_repeats" in _price_twice(meaning, other)


@pytest.mark.parametrize("warning", ["Careful, the step!", "Watch out!", "Mind your head!", "小心台阶！"])
def test_warning_may_cut_in(meaning: EncoderMatcher, warning: str) -> None:
    assert is_warning(warning)
    assert not _cut_in(meaning, warning)


@pytest.mark.parametrize("words", ["The tickets are nine euros.", "Be careful what you say to her, then."])
def test_other_words_may_not_cut_in(meaning: EncoderMatcher, words: str) -> None:
    assert not is_warning(words)
    assert "robot_cuts_in" in _cut_in(meaning, words)


@pytest.mark.parametrize("call", ["Hey, that is great!", "Hey, wait.", "Hey."])
def test_hey_within_a_talk_is_no_greeting(meaning: EncoderMatcher, call: str) -> None:
    talk = (robot(0, 2, "Good morning, welcome."), user(2.5, 4, "A book on owls."), robot(4.5, 7, "Shelf nine."))
    assert not _errors(meaning, *talk, user(20, 21, call), robot(21.6, 24, "Shelf nine is on the left."), until_s=30)


def test_hey_at_the_start_is_a_greeting(meaning: EncoderMatcher) -> None:
    assert "no_greeting" in _errors(meaning, user(0, 1, "Hey!"), robot(1.5, 3, "The ticket is five euros."))


@pytest.mark.parametrize("words", ["Bye, robot!", "Good night, Mr Thapa!", "Bye, and have a good afternoon."])
def test_taking_leave_is_no_greeting(meaning: EncoderMatcher, words: str) -> None:
    assert "no_greeting" not in _errors(meaning, user(0, 1, words), robot(1.5, 3, "The ticket is five euros."))


def test_an_answer_to_a_question_that_thinks_aloud_is_no_cutting_in(meaning: EncoderMatcher) -> None:
    asked = user(0, 5, "So the next one would be, let me see, twenty past?")
    assert "robot_cuts_in" not in _errors(meaning, asked, robot(5.7, 7.6, "Two minutes later."))
