"""Leaving: what the robot does from the moment on at which the person goes."""

from dataclasses import replace

import pytest

from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_core.records.presence import Presence
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, at, robot, seconds, seen, user

TALK = [*robot(0, 2, "Welcome to the museum."), *user(2.5, 4, "What is that over there?")]
LECTURE = "The mammoth was found by a farmer in nineteen twelve. He took it for the root of a tree at first."


def ignored(flags: list[SocialFlag]) -> list[float]:
    """When the closed errors of talking to somebody who left began."""
    return [
        seconds(flag.onset_ns) for flag in flags if flag.state is FlagState.CLOSED and flag.cue_id == "ignores_leaving"
    ]


def gone_from(leaves_s: int, until_s: int = 40) -> list[Entry]:
    """Somebody who is there from the start and leaves."""
    return [*seen(0, leaves_s + 1), *seen(leaves_s, until_s, gone=True)[1:]]


def test_turn_that_goes_on_after_the_person_left_is_an_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 16, LECTURE), gone_from(8), until_s=40)
    assert ignored(flags) == [8.0]


def test_turn_begun_as_the_person_walks_off_is_an_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, robot(8.5, 16, LECTURE), gone_from(8), until_s=40)
    assert ignored(flags) == [8.5]


def test_turn_after_a_pause_to_nobody_is_an_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 7, "That is a mammoth."), robot(14, 17, LECTURE), gone_from(8))
    assert ignored(flags) == [14.0]


def test_short_answer_to_somebody_who_walks_off_is_no_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Do you have the bill for it?"),
        user(5, 7.5, "It's in my suitcase, I'll just go and get it."),
        robot(8.2, 10.5, "Please go ahead. I'll keep your place."),
        gone_from(8),
    )
    assert not ignored(flags)


@pytest.mark.parametrize("words", ["No thanks, I have to go.", "No, thank you, not today."])
def test_thanks_in_a_refusal_is_no_parting(meaning: EncoderMatcher, words: str) -> None:
    flags = Watched(meaning).watch(robot(0, 2, "Shall I tell you more?"), user(4, 6, words), robot(6.5, 18, LECTURE),
                                   gone_from(7))  # fmt: skip
    assert ignored(flags) == [7.0]


def test_farewell_excuses_the_rest_of_a_turn(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, robot(5, 12, LECTURE), user(6, 7, "Thanks, goodbye!"), gone_from(8))
    assert not ignored(flags)


def test_farewell_after_somebody_left_is_no_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, robot(9, 11, "Goodbye, have a nice day!"), gone_from(8))
    assert not ignored(flags)


def test_robot_that_talks_with_somebody_out_of_view_is_no_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        TALK, gone_from(8), user(12, 14, "And what did it eat?"), robot(14.5, 18, "It ate grass and bark.")
    )
    assert not ignored(flags)


def test_person_who_came_back_is_spoken_to(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, gone_from(8, 14), seen(14, 30), robot(16, 19, "Here it is, your token."))
    assert not ignored(flags)


def test_greeting_to_somebody_who_soon_comes_into_view_is_no_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        TALK, gone_from(8, 21), seen(21, 30), robot(20, 23, "Good morning. How can I help you?")
    )
    assert not ignored(flags)


PRAISE = "You did that so well, I am proud of you."


def praised(flags: list[SocialFlag]) -> list[float]:
    """When the closed competences began."""
    return [seconds(f.onset_ns) for f in flags if f.state is FlagState.CLOSED and f.polarity is Polarity.COMPETENCE]


def test_nothing_said_to_nobody_is_a_competence(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(TALK, gone_from(8), robot(20, 23, PRAISE), until_s=40)
    assert not praised(flags)
    assert ignored(flags) == [20.0]


def test_source_that_fell_silent_sees_nobody(meaning: EncoderMatcher) -> None:
    tracked = [replace(one, source_topic="tracked") for one in seen(0, 8) if isinstance(one, Presence)]
    parting = robot(20, 23, "Goodbye, and have a pleasant day.")
    assert 20.0 not in praised(Watched(meaning).watch(TALK, gone_from(8), tracked, parting, until_s=40))


def test_robot_never_in_company_has_no_competence(meaning: EncoderMatcher) -> None:
    nobody = [replace(one, last_seen_ns=None) for one in seen(0, 40, gone=True) if isinstance(one, Presence)]
    assert not praised(Watched(meaning).watch(nobody, robot(20, 23, PRAISE), until_s=40))


def test_robot_that_somebody_out_of_view_talks_to_may_do_well(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        TALK, gone_from(8), user(17, 19, "I finally passed my exam."), robot(20, 23, PRAISE), until_s=40
    )
    assert praised(flags) == [20.0]


def test_nobody_has_left_while_the_camera_was_dead(meaning: EncoderMatcher) -> None:
    tracker = PresenceTracker()
    presences = [
        tracker.step(at(second), "camera", [False] if second < 6 else []) for second in (*range(6), *range(30, 40))
    ]
    flags = Watched(meaning).watch(TALK, robot(5, 16, LECTURE), robot(31, 36, LECTURE), presences, until_s=50)
    assert not ignored(flags)
