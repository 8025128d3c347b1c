"""Leaving: what the robot does from the moment on at which the person goes."""

import pytest

from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_monitor.context.meaning import Meanings
from tests.norm_monitor.encounter_talk import Watched, robot, seconds, seen, user

TALK = [*robot(0, 2, "Welcome to the museum."), *user(2.5, 4, "What is that over there?")]
LECTURE = "The mammoth was found by a farmer in nineteen twelve. He took it for the root of a tree at first."


def ignored(flags: list[SocialFlag]) -> list[float]:
    """When the closed errors of talking to somebody who left began."""
    return [
        seconds(flag.onset_ns) for flag in flags if flag.state is FlagState.CLOSED and flag.cue_id == "ignores_leaving"
    ]


def gone_from(leaves_s: int, until_s: int = 40) -> list[object]:
    """Somebody who is there from the start and leaves."""
    return [*seen(0, leaves_s + 1), *seen(leaves_s, until_s, gone=True)[1:]]


def test_turn_that_goes_on_after_the_person_left_is_an_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 16, LECTURE), gone_from(8), until_s=40)
    assert ignored(flags) == [8.0]


def test_turn_begun_as_the_person_walks_off_is_an_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, robot(8.5, 16, LECTURE), gone_from(8), until_s=40)
    assert ignored(flags) == [8.5]


def test_turn_after_a_pause_to_nobody_is_an_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 7, "That is a mammoth."), robot(14, 17, LECTURE), gone_from(8))
    assert ignored(flags) == [14.0]


def test_short_answer_to_somebody_who_walks_off_is_no_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Do you have the bill for it?"),
        user(5, 7.5, "It's in my suitcase, I'll just go and get it."),
        robot(8.2, 10.5, "Please go ahead. I'll keep your place."),
        gone_from(8),
    )
    assert not ignored(flags)


@pytest.mark.parametrize("words", ["No thanks, I have to go.", "No, thank you, not today."])
def test_thanks_in_a_refusal_is_no_parting(meaning: Meanings, words: str) -> None:
    flags = Watched(meaning).watch(robot(0, 2, "Shall I tell you more?"), user(4, 6, words), robot(6.5, 18, LECTURE),
                                   gone_from(7))  # fmt: skip
    assert ignored(flags) == [7.0]


def test_farewell_excuses_the_rest_of_a_turn(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 12, LECTURE), user(6, 7, "Thanks, goodbye!"), gone_from(8))
    assert not ignored(flags)


def test_farewell_after_somebody_left_is_no_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, robot(9, 11, "Goodbye, have a nice day!"), gone_from(8))
    assert not ignored(flags)


def test_robot_that_talks_with_somebody_out_of_view_is_no_error(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(
        TALK, gone_from(8), user(12, 14, "And what did it eat?"), robot(14.5, 18, "It ate grass and bark.")
    )
    assert not ignored(flags)


def test_person_who_came_back_is_spoken_to(meaning: Meanings) -> None:
    flags = Watched(meaning).watch(TALK, gone_from(8, 14), seen(14, 30), robot(16, 19, "Here it is, your token."))
    assert not ignored(flags)


@pytest.mark.parametrize("words", ["You did that so well, I am proud of you.", "I am so sorry, that was my mistake."])
def test_nothing_said_to_nobody_is_a_competence(meaning: Meanings, words: str) -> None:
    flags = Watched(meaning).watch(TALK, gone_from(8), robot(20, 23, words), until_s=40)
    assert not [f for f in flags if f.polarity is Polarity.COMPETENCE and seconds(f.onset_ns) == 20.0]
    assert ignored(flags) == [20.0]


def test_robot_that_somebody_out_of_view_answers_may_do_well(meaning: Meanings) -> None:
    words = "I am so sorry, that was my mistake."
    flags = Watched(meaning).watch(
        TALK, gone_from(8), user(17, 19, "You told me the wrong way."), robot(20, 23, words), until_s=40
    )
    assert [f for f in flags if f.polarity is Polarity.COMPETENCE and seconds(f.onset_ns) == 20.0]
