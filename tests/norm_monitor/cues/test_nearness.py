"""Nearness: who comes near whom, and what for."""

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, approaching, near, robot, user

TALK = robot(0, 2, "The forms are on the table.")


def too_near(flags: list[SocialFlag]) -> list[SocialFlag]:
    """The closed flags of a robot that is too near."""
    return [flag for flag in flags if flag.state is FlagState.CLOSED and flag.cue_id == "too_near"]


def crowded(from_s: float, until_s: float) -> list[Entry]:
    """A robot that drives slowly up to somebody and stays."""
    return [*approaching(from_s - 4, from_s, 2.0, 0.5), *near(from_s, until_s, 0.5)]


def test_robot_that_drives_up_and_stays_is_too_near(meaning: EncoderMatcher) -> None:
    assert too_near(Watched(meaning).watch(TALK, crowded(6, 12), until_s=30))


def test_robot_that_talks_at_close_range_is_too_near(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        TALK, crowded(6, 12), robot(6.5, 9, "Your form is wrong."), user(9.5, 11, "I see."), until_s=30
    )
    assert too_near(flags)


@pytest.mark.parametrize("words", ["Here you are, your receipt.", "Could you sign here on my screen?", "Thank you."])
@pytest.mark.parametrize("says_s", [4.5, 12.5])
def test_handing_something_over_is_not_too_near(meaning: EncoderMatcher, words: str, says_s: float) -> None:
    flags = Watched(meaning).watch(TALK, crowded(6, 11), robot(says_s, says_s + 1.5, words), until_s=30)
    assert not too_near(flags)


def test_person_who_walks_up_to_the_robot_comes_near(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, approaching(4.5, 6, 2.5, 0.5), near(6, 12, 0.5), until_s=30)
    assert not too_near(flags)


def test_person_who_steps_close_to_say_something_comes_near(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, crowded(6, 12), user(6.8, 9, "Is this the right box for my name?"), until_s=30)
    assert not too_near(flags)


def test_person_who_asks_for_room_did_not_come_near(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, crowded(6, 12), user(6.8, 9, "Whoa, you are too close, back off."), until_s=30)
    assert too_near(flags)
