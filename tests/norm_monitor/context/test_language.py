"""The language of a talk: which one the cues of wording can read."""

from dataclasses import replace

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.speech import RobotSpeech, Utterance
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, robot, user

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


@pytest.mark.parametrize("talk", [GERMAN, RUSSIAN])
def test_cues_of_wording_are_off_in_another_language(meaning: EncoderMatcher, talk: list[Entry]) -> None:
    watched = Watched(meaning)
    flags = watched.watch(talk, until_s=30)
    assert not words_cues(flags)
    assert watched.monitor.language_reason.startswith("language: ")


def test_english_with_a_foreign_word_keeps_its_cues(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    assert words_cues(watched.watch(ENGLISH, until_s=30))
    assert watched.monitor.language_reason == ""


@pytest.mark.parametrize("fragment", ["Ciao!", "Ja, danke.", "Merci beaucoup.", "Ich."])
def test_short_foreign_fragment_switches_nothing_off(meaning: EncoderMatcher, fragment: str) -> None:
    watched = Watched(meaning)
    watched.watch(ENGLISH, user(12, 13, fragment), until_s=30)
    assert watched.monitor.language_reason == ""


def test_chinese_keeps_its_cues(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    watched.watch(robot(0, 3, "您好，请问有什么可以帮您？"), user(4, 6, "洗手间在哪里？我找了很久也没找到。"))
    assert watched.monitor.language_reason == ""


def test_stated_language_counts_before_the_words(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    flags = watched.watch(stated(ENGLISH, "nl-NL"), until_s=30)
    assert not words_cues(flags)
    assert "nl" in watched.monitor.language_reason


def test_stated_english_keeps_its_cues(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    watched.watch(stated(GERMAN, "en"), until_s=30)
    assert watched.monitor.language_reason == ""


def test_timing_goes_on_in_another_language(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(GERMAN, user(12, 14, "Wo ist denn hier der Ausgang?"), until_s=30)
    assert "no_response" in {flag.cue_id for flag in flags}


def test_talk_that_returns_to_english_is_read_again(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    english = [
        *user(200, 203, "Sorry, can we speak English now? I would like that."),
        *robot(204, 207, "Of course, what can I do for you?"),
    ]
    watched.watch(GERMAN, english, until_s=220)
    assert watched.monitor.language_reason == ""
