"""Farewells: who takes leave, and whether the robot returns it."""

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_monitor.context.meaning import Meanings
from tests.norm_monitor.encounter_talk import Watched, robot, user

BEFORE = robot(0, 2, "The lift is behind you.")


def not_returned(flags: list[SocialFlag]) -> list[SocialFlag]:
    """The closed flags of farewells that were not returned."""
    return [flag for flag in flags if flag.state is FlagState.CLOSED and flag.cue_id == "no_goodbye"]


@pytest.mark.parametrize(
    "words", ["Bye!", "Goodbye, robot.", "Thanks, bye.", "Okay, I'm off. Bye!", "See you tomorrow.", "再见！"]
)
def test_silence_after_a_farewell_is_an_error(meaning: Meanings, words: str) -> None:
    assert not_returned(Watched(meaning).watch(BEFORE, user(3, 4.5, words), until_s=20))


def test_farewell_answered_by_something_else_is_an_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(
        BEFORE, user(3, 4, "Goodbye!"), robot(4.5, 7, "The shop is open until six today."), until_s=20
    )
    assert not_returned(flags)


@pytest.mark.parametrize(
    "words", ["Goodbye, and take care.", "Bye!", "Have a lovely day.", "All the best for the exam!"]
)
def test_farewell_that_is_returned_is_no_error(meaning: Meanings, words: str) -> None:
    assert not not_returned(Watched(meaning).watch(BEFORE, user(3, 4, "Bye!"), robot(4.5, 6, words), until_s=20))


def test_robot_that_took_leave_first_owes_nothing(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(robot(0, 2, "Goodbye, and have a nice day!"), user(2.5, 3, "Bye."), until_s=20)
    assert not not_returned(flags)


@pytest.mark.parametrize("words", ["She said goodbye to him.", "I have to go to the third floor.", "Bye the way, hm."])
def test_words_like_a_farewell_are_none(meaning: Meanings, words: str) -> None:
    assert not not_returned(Watched(meaning).watch(BEFORE, user(3, 5, words), until_s=20))
