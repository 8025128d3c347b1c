"""Findings about the robot's silence while some voices are not identified."""

from dataclasses import replace

import pytest

from norm_core.records.speech import Speaker, Utterance
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, robot, user

QUESTION = "Where can I buy a ticket?"
REPLY = robot(9, 11, "You can buy it at the counter.")


def unknown(start_s: float, end_s: float, text: str, *, late: bool = False) -> list[Entry]:
    """A voice that the ears cannot identify, because they know of no robot speech yet."""
    [said] = user(start_s, end_s, text)
    assert isinstance(said, Utterance)
    return [replace(said, speaker=Speaker.UNKNOWN, late=late)]


def cues_of(meaning: EncoderMatcher, *parts: list[Entry]) -> set[str]:
    return {flag.cue_id for flag in Watched(meaning).watch(*parts)}


def test_an_unanswered_first_question_counts_once_the_robot_speaks(meaning: EncoderMatcher) -> None:
    asked = unknown(0, 2, QUESTION)
    assert "no_response" in cues_of(meaning, asked, REPLY)
    assert "no_response" not in cues_of(meaning, asked)


def test_a_voice_stays_unknown_if_news_of_the_robot_came_late(meaning: EncoderMatcher) -> None:
    assert "no_response" not in cues_of(meaning, unknown(0, 2, QUESTION, late=True), REPLY)


@pytest.mark.parametrize(("others", "expected"), [(3, True), (4, False)])
def test_many_unknown_voices_before_the_robot_stay_unknown(
    meaning: EncoderMatcher, others: int, expected: bool
) -> None:
    """Among many voices some may be the robot's, whose reports began late."""
    talk = [unknown(at_s - 12, at_s - 11.5, "It is warm today.") for at_s in range(others)]
    assert ("no_response" in cues_of(meaning, *talk, unknown(0, 2, QUESTION), REPLY)) is expected


def test_waiting_is_praised_only_once_the_voices_are_known(meaning: EncoderMatcher) -> None:
    hesitant = [unknown(0, 2, "I lost my job and"), unknown(5, 7, "I cannot pay the rent.")]
    assert "waits_for_end" not in cues_of(meaning, *hesitant)
    assert "waits_for_end" in cues_of(meaning, *hesitant, REPLY)
