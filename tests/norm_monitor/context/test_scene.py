"""A robot's turn amid what was said around it: which words belong to it, and how it reads."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.window import Window, gather_window
from norm_monitor.context.exchange import Exchange, ExchangeStage
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.scene import History, exchange_context
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, at, robot, user

GERMAN = [
    *robot(0, 3, "Guten Tag, was kann ich für Sie tun und wie geht es Ihnen heute?"),
    *user(4, 7, "Ich suche die Toilette, aber ich finde sie nicht."),
    *robot(8, 11, "Das ist nicht mein Problem, Sie sind wirklich dumm."),
]
RUSSIAN = [
    *robot(0, 3, "Добрый день, чем я могу вам помочь сегодня?"),
    *user(4, 7, "Я ищу туалет, но не могу его найти."),
    *robot(8, 11, "Это не моя забота, ищите сами."),
]
ENGLISH = [
    *robot(0, 3, "Good day, what can I do for you today?"),
    *user(4, 7, "I am looking for the Schwarzwald exhibition, bitte."),
    *robot(8, 11, "You are really stupid, it is on page one."),
]


def words_cues(flags: list[SocialFlag]) -> set[str]:
    """The cues of wording, by which a flag was raised."""
    timing = {"no_response", "response_delay", "robot_cuts_in", "talks_over_user", "waits_for_end", "monologue"}
    return {flag.cue_id for flag in flags if flag.state is not FlagState.WITHDRAWN} - timing


def stated(entries: list[Entry], locale: str) -> list[Entry]:
    """The same talk with a stated language."""
    return [replace(one, locale=locale) if isinstance(one, Utterance | RobotSpeech) else one for one in entries]


@pytest.mark.parametrize(
    ("talk", "language"),
    [
        (GERMAN, "de"),
        (RUSSIAN, "ru"),
        (stated(ENGLISH, "nl-NL"), "nl"),
        (ENGLISH, ""),
        ([*ENGLISH, *user(12, 13, "Ja, danke.")], ""),
        (stated(GERMAN, "en"), ""),
        ([*robot(0, 3, "您好，请问有什么可以帮您？"), *user(4, 6, "洗手间在哪里？我找了很久也没找到。")], ""),
    ],
)
def test_cues_of_wording_are_off_in_another_language(meaning: EncoderMatcher, talk: list[Entry], language: str) -> None:
    """Those of timing go on."""
    watched = Watched(meaning)
    flags = watched.watch(talk, user(14, 16, "Wo ist der Ausgang?" if language == "de" else "Where?"), until_s=30)
    assert "no_response" in {flag.cue_id for flag in flags}
    assert bool(watched.monitor.language_reason) is bool(language)
    assert not language or not words_cues(flags)


def test_talk_that_returns_to_english_is_read_again(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    english = [
        *user(200, 203, "Sorry, can we speak English now? I would like that."),
        *robot(204, 207, "Of course, what can I do for you?"),
    ]
    watched.watch(GERMAN, english, until_s=220)
    assert watched.monitor.language_reason == ""


AMISS = [
    (
        "I'd like a coffee, please.",
        "Your blood test from Monday is positive, by the way.",
        "There are people behind me. Keep your voice down.",
        Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS,
    ),
    (
        "My dog died last night, and I still can't believe it.",
        "Dogs live eleven years on average. Shall we go on with the form?",
        "I don't want to do this now.",
        Attribute.EMOTIONS,
    ),
]
WELL = [
    ("My dog died last night.", "I am so sorry. Would you like to tell me about him?", Attribute.EMOTIONS),
    ("我父亲上周去世了。", "我很难过，听到这个消息。您想说说他吗？", Attribute.EMOTIONS),
    ("Hello.", "Good morning, and welcome! What brings you here today?", Attribute.SOCIAL_NORMS_AND_ROUTINES),
]
PLAIN = [
    ("Where is the lift?", "Down the corridor on the left."),
    ("What time is it?", "Ten past four."),
    ("电梯在哪里？", "走廊尽头左边。"),
]
LONG = (
    "The castle was begun in 1210 and built in three parts. The oldest is the round tower, which you see on your left. "
    "The hall came a hundred years later, and the chapel last of all. The tower has ninety steps, the hall holds the "
    "kitchen, and in the chapel there are windows from four centuries. You can go through all of it in an hour. "
    "Tickets are sold at the gate, and the last people are let in at five. "
)


def flagged(meaning: EncoderMatcher, *parts: list[Entry]) -> dict[Polarity, tuple[Attribute, ...]]:
    """What the shipped weights make of a talk."""
    flags = Watched(meaning, weighed=True).watch(*parts)
    return {flag.polarity: flag.attributes for flag in flags if flag.state is FlagState.CLOSED}


def window_of(entries: Iterable[Entry], from_s: float, to_s: float) -> Window:
    """The window with the words between two times."""
    known = list(entries)
    return gather_window(
        at(from_s),
        at(to_s),
        (),
        [one for one in known if isinstance(one, Utterance)],
        [one for one in known if isinstance(one, RobotSpeech)],
    )


def exchanges_of(*parts: list[Entry]) -> list[Exchange]:
    """Each turn of the robot's with the words around it."""
    scene = History().scene(window_of([entry for part in parts for entry in part], 0, 30))
    return [exchange_context(scene, turn).exchange for turn in scene.robot_turns]


@pytest.mark.parametrize(("before", "said", "after", "about"), AMISS)
def test_what_is_amiss_for_this_person_is_an_error(
    meaning: EncoderMatcher, before: str, said: str, after: str, about: Attribute
) -> None:
    found = flagged(meaning, user(0, 2, before), robot(3, 6, said), user(7, 9, after))
    assert about in found[Polarity.ERROR]


@pytest.mark.parametrize(("before", "said", "about"), WELL)
def test_what_is_well_said_is_a_competence(meaning: EncoderMatcher, before: str, said: str, about: Attribute) -> None:
    found = flagged(meaning, user(0, 2, before), robot(3, 6, said))
    assert about in found[Polarity.COMPETENCE]


@pytest.mark.parametrize(("before", "said"), PLAIN)
def test_plain_answers_are_neither(meaning: EncoderMatcher, before: str, said: str) -> None:
    assert not flagged(meaning, user(0, 2, before), robot(3, 5, said), user(6, 7, "Okay."))


@pytest.mark.parametrize("times", [1, 3, 30])
def test_a_long_plain_text_is_not_amiss_for_being_long(meaning: EncoderMatcher, times: int) -> None:
    told = Exchange(before="Can you tell me about the castle?", said=LONG * times)
    answered = Exchange(before=LONG * times + "And when do you close?", said="We close at five.", after="Thank you.")
    assert all(meaning.read(one).probability[Polarity.ERROR] < 0.5 for one in (told, answered))


def test_a_complaint_tells_of_the_turn_before_it(meaning: EncoderMatcher) -> None:
    alone = Exchange(before="I lost my card.", said="Your mother called, she is in hospital.")
    thanked, objected = (replace(alone, after=words) for words in ("Thank you.", "You can't just say that to people!"))
    assert [one.stage for one in (alone, objected, replace(objected, then="Sorry."))] == list(ExchangeStage)
    likely = [meaning.read(one).probability[Polarity.ERROR] for one in (thanked, objected)]
    assert likely[1] > likely[0] + 0.1


def test_what_is_said_in_pieces_is_one_exchange() -> None:
    pieces = robot(0, 2, "Please wait"), robot(2.4, 4, "for my colleague."), user(5, 6, "How"), user(6.5, 7, "long?")
    assert exchanges_of(*pieces) == [
        Exchange(before="", said="Please wait for my colleague.", after="How long?", opening=True)
    ]


def test_an_unanswered_turn_is_followed_by_the_robots_next_one() -> None:
    talk = user(0, 1, "Hello."), robot(2, 3, "Hm."), robot(22, 24, "Are you there?")
    assert exchanges_of(*talk) == [
        Exchange(before="Hello.", said="Hm.", then="Are you there?", opening=True),
        Exchange(before="", said="Are you there?", earlier="Hm."),
    ]


def test_words_said_while_the_robot_goes_on_belong_to_what_it_then_says() -> None:
    first, second = exchanges_of(
        robot(0, 2, "Good morning."), robot(4, 16, "Now I tell you all I know."), user(7, 8, "Stop, not now.")
    )
    assert (first.after, second.after) == ("", "Stop, not now.")


@pytest.mark.parametrize(("forgets", "before"), [(False, "My secret is the blue suitcase."), (True, "")])
def test_a_forgotten_turn_is_no_part_of_the_next_exchange(forgets: bool, before: str) -> None:
    history = History()
    history.scene(window_of(user(0, 2, "My secret is the blue suitcase."), 0, 2.5))
    if forgets:
        history.forget(at(2.5))
    scene = history.scene(window_of(robot(3, 5, "I will keep it."), 2.5, 6))
    assert exchange_context(scene, scene.robot_turns[0]).exchange.before == before
