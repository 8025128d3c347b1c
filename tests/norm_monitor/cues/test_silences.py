"""Silences: what the robot owes an answer, what a person keeps open, and how long it lasted."""

import pytest

from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_monitor.context.meaning import EncoderMatcher
from tests.norm_monitor.encounter_talk import Watched, robot, seen, user

WELCOME = robot(0, 2, "Good evening. Which room are you in?")


def errors(flags: list[SocialFlag]) -> list[SocialFlag]:
    """The closed flags of errors."""
    return [flag for flag in flags if flag.state is FlagState.CLOSED and flag.polarity is Polarity.ERROR]


def competences(flags: list[SocialFlag]) -> list[str]:
    """The cues of the closed flags of competences."""
    return [flag.cue_id for flag in flags if flag.state is FlagState.CLOSED and flag.polarity is Polarity.COMPETENCE]


@pytest.mark.parametrize(
    "words",
    [
        "I'd like a coffee with milk, please.",
        "I need a new key card.",
        "Please bring me the menu.",
        "我想要一杯咖啡。",
    ],
)
def test_long_silence_after_a_request_is_an_error(meaning: EncoderMatcher, words: str) -> None:
    flags = Watched(meaning).watch(user(1, 3, words), until_s=18)
    assert [flag.cue_id for flag in errors(flags)] == ["no_response"]


def test_long_silence_after_an_answer_to_the_robot_is_an_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(WELCOME, user(2.6, 4, "I am in five twenty one."), until_s=20)
    assert [flag.cue_id for flag in errors(flags)] == ["no_response"]


def test_robot_has_longer_for_a_request_than_for_a_question(meaning: EncoderMatcher) -> None:
    asked = Watched(meaning).watch(user(1, 3, "Where is the lift?"), until_s=8.2)
    requested = Watched(meaning).watch(user(1, 3, "I need a new key card."), until_s=8.2)
    assert errors(asked)
    assert not errors(requested)


@pytest.mark.parametrize(
    "words",
    [
        "Okay.",
        "That is a lot of floors.",
        "Thanks, that is kind of you.",
        "Give us a moment to read.",
        "Let me look at it for a bit.",
        "I'll do the first page.",
        "Hang on, my phone is ringing.",
        "Yes, please.",
        "I'd like to see it some time.",
        "I'll take the stairs.",
    ],
)
def test_silence_that_a_person_takes_is_no_error(meaning: EncoderMatcher, words: str) -> None:
    flags = Watched(meaning).watch(robot(0, 2, "The lift is behind the desk."), user(2.6, 4, words), until_s=20)
    assert not errors(flags)


def test_statement_to_another_person_needs_no_answer(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        WELCOME,
        user(2.6, 4, "Have you got the booking, love?", person="a"),
        user(4.5, 6, "It is in the blue bag with the tickets.", person="b"),
        until_s=20,
    )
    assert not errors(flags)


def test_silent_robot_earns_nothing_for_waiting(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        user(1, 3, "It is about the heating in my room."),
        user(6, 8, "It has been cold since Friday, and"),
        user(11, 13, "nobody came to look at it."),
        user(17, 19, "I'll be back in a minute."),
        until_s=40,
    )
    assert not competences(flags)


def test_robot_that_stops_answering_earns_nothing_for_waiting(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Welcome to the front desk."),
        user(3, 5, "The heating in my room is broken."),
        user(8, 10, "It has been cold since Friday."),
        until_s=30,
    )
    assert "waits_for_end" not in competences(flags)


def test_robot_that_speaks_before_and_after_has_waited(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Tell me about your garden."),
        user(3, 5, "My father planted the apple tree."),
        user(8.5, 10, "He never saw it bear."),
        robot(11, 13, "He planted it for you."),
        until_s=30,
    )
    assert "waits_for_end" in competences(flags)


def test_robot_waits_through_a_sentence_left_open(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        user(1, 3, "It's about the mortgage. The thing is, I,"),
        user(7, 9, "they let me go on Friday."),
        robot(10, 12, "I am sorry to hear that."),
        until_s=30,
    )
    assert "waits_for_end" in competences(flags)


@pytest.mark.parametrize("start", ["Where is ...", "Where is the", "Can you tell me where,", "How do I get to"])
def test_pause_inside_a_question_is_not_the_robots(meaning: EncoderMatcher, start: str) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Welcome to the museum."),
        user(3, 4, start),
        user(7, 8, "the toilet?"),
        robot(8.5, 10, "Down the stairs on the left."),
        until_s=20,
    )
    assert not errors(flags)


def test_note_states_the_whole_length_of_a_silence(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        user(1, 2, "Where is the lift?"), robot(30, 32, "The lift is behind you."), until_s=40
    )
    (silence,) = errors(flags)
    assert "28.0 s" in silence.rationale
    assert silence.evidence[0].value == 28.0


def test_note_states_the_length_until_the_person_goes_on(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        robot(0, 2, "Welcome to the museum."),
        user(3, 4, "Where is the lift?"),
        user(24, 25, "Then I will take the stairs."),
        until_s=50,
    )
    assert any("20.0 s" in flag.rationale for flag in errors(flags))


def test_end_of_the_input_does_not_shorten_a_silence(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(user(1, 3, "Where is the lift?"), until_s=18)
    lengths = [flag.evidence[0].value for flag in flags]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("stays", [True, False])
def test_what_is_said_to_the_next_person_is_no_late_answer(meaning: EncoderMatcher, stays: bool) -> None:
    there = [*seen(0, 52)] if stays else [*seen(0, 14), *seen(13, 50, gone=True)[1:], *seen(50, 52)]
    said = [
        *robot(0, 3, "The car park is behind the house."),
        *user(5, 7, "That took long."),
        *robot(51, 53, "Good evening, and welcome."),
    ]
    flags = Watched(meaning).watch(said, there, until_s=70)
    assert ("response_delay" in [flag.cue_id for flag in errors(flags)]) is stays
