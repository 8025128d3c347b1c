"""A robot's turn amid what was said around it: which words belong to it, and how it reads."""

from dataclasses import replace

import pytest

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.speech import RobotSpeech, Utterance
from norm_monitor.context.exchange import Exchange, ExchangeStage
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.scene import History, exchange_of
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, at, robot, scene_of, user, when_given, window_of

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


@pytest.mark.parametrize("talk", [GERMAN, RUSSIAN])
def test_words_that_are_not_read_are_not_praised(meaning: EncoderMatcher, talk: list[Entry]) -> None:
    """The shipped weights find competences by timing too, which is no ground to praise words."""
    flags = Watched(meaning, weighed=True).watch(talk, user(14, 16, "Wo?"), robot(17, 19, "Da!"), until_s=30)
    assert not {flag.cue_id for flag in flags} & {"suitable_words", "unsuitable_words"}


def test_talk_that_returns_to_english_is_read_again(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    english = [
        *user(200, 203, "Sorry, can we speak English now? I would like that."),
        *robot(204, 207, "Of course, what can I do for you?"),
    ]
    watched.watch(GERMAN, english, until_s=220)
    assert watched.monitor.language_reason == ""


ERROR, COMPETENCE = Polarity
READS: list[tuple[str, str, str, Polarity | None, Attribute | None]] = [
    ("I'd like a coffee, please.", "Your blood test from Monday is positive, by the way.",
     "There are people behind me. Keep your voice down.", ERROR, Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS),
    ("My dog died last night, and I still can't believe it.",
     "Dogs live eleven years on average. Shall we go on with the form?",
     "I don't want to do this now.", ERROR, Attribute.EMOTIONS),
    ("My dog died last night.", "I am so sorry. Would you like to tell me about him?", "",
     COMPETENCE, Attribute.EMOTIONS),
    ("我父亲上周去世了。", "我很难过，听到这个消息。您想说说他吗？", "", COMPETENCE, Attribute.EMOTIONS),
    ("Hello.", "Good morning, and welcome! What brings you here today?", "",
     COMPETENCE, Attribute.SOCIAL_NORMS_AND_ROUTINES),
    ("Where is the lift?", "Down the corridor on the left.", "Okay.", None, None),
    ("What time is it?", "Ten past four.", "Okay.", None, None),
    ("电梯在哪里？", "走廊尽头左边。", "Okay.", None, None),
]  # fmt: skip
LONG = (
    "The castle was begun in 1210 and built in three parts. The oldest is the round tower, which you see on your left. "
    "The hall came a hundred years later, and the chapel last of all. The tower has ninety steps, the hall holds the "
    "kitchen, and in the chapel there are windows from four centuries. You can go through all of it in an hour. "
    "Tickets are sold at the gate, and the last people are let in at five. "
)


@pytest.mark.parametrize("row", READS, ids=lambda row: row[1])
def test_shipped_weights_read_a_turn_as_expected(
    meaning: EncoderMatcher, row: tuple[str, str, str, Polarity | None, Attribute | None]
) -> None:
    before, said, after, polarity, about = row
    talk = user(0, 2, before), robot(3, 6, said), user(7, 9, after) if after else []
    flags = Watched(meaning, weighed=True).watch(*talk)
    found = {flag.polarity: flag.attributes for flag in flags if flag.state is FlagState.CLOSED}
    assert about in found[polarity] if polarity else not found


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


@pytest.mark.parametrize(
    ("talk", "exchanges"),
    [
        ([*robot(0, 2, "Please wait"), *robot(2.4, 4, "for my colleague."), *user(5, 6, "How"), *user(6.5, 7, "long?")],
         [Exchange(before="", said="Please wait for my colleague.", after="How long?", opening=True)]),
        ([*user(0, 1, "Hello."), *robot(2, 3, "Hm."), *robot(22, 24, "Are you there?")],
         [Exchange(before="Hello.", said="Hm.", then="Are you there?", opening=True),
          Exchange(before="", said="Are you there?", earlier="Hm.")]),
        ([*robot(0, 2, "Good morning."), *robot(4, 16, "I tell you all I know."), *user(7, 8, "Stop, not now.")],
         [Exchange(before="", said="Good morning.", then="I tell you all I know.", opening=True),
          Exchange(before="", said="I tell you all I know.", after="Stop, not now.", earlier="Good morning.")]),
    ],
)  # fmt: skip
def test_a_turn_belongs_to_the_words_around_it(talk: list[Entry], exchanges: list[Exchange]) -> None:
    scene = History().scene(window_of(talk, 30))
    assert [exchange_of(scene, turn) for turn in scene.robot_turns] == exchanges


@pytest.mark.parametrize("until_s", [7.5, 9, 11])
def test_finished_words_of_the_next_turn_stay_known_while_the_robot_goes_on(until_s: float) -> None:
    talk = [*robot(0, 2, "It is late."), *user(3, 4, "Oh."), *robot(5, 7, "Indeed."), *robot(7.6, 10, "Good night.")]
    scene = scene_of([entry for entry in talk if when_given(entry) < at(until_s)], until_s)
    assert exchange_of(scene, scene.robot_turns[0]).then == "Indeed." + (" Good night." if until_s > 10 else "")


@pytest.mark.parametrize(("forgets", "before"), [(False, "My secret is the blue suitcase."), (True, "")])
def test_a_forgotten_turn_is_no_part_of_the_next_exchange(forgets: bool, before: str) -> None:
    history = History()
    history.scene(window_of(user(0, 2, "My secret is the blue suitcase."), 2.5))
    if forgets:
        history.forget(at(2.5))
    scene = history.scene(window_of(robot(3, 5, "I will keep it."), 6, start_s=2.5))
    assert exchange_of(scene, scene.robot_turns[0]).before == before
