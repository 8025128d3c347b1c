"""Notes read like a coder's: short, one quote, no certainty about what is only suggested or may be misheard."""

import re

import pytest

from norm_core.records.flag import FlagState, Polarity, Severity, SocialFlag
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import encounters
from norm_monitor.monitor import Monitor, MonitorConfig
from sim_replays.monitor_bench.script_driver import records_of_script
from tests.norm_monitor.assessment.test_registry import alone
from tests.norm_monitor.encounter_talk import Watched, last_of, robot, user

MOST_WORDS = 30
SAMPLE = 20


def _check(note: str) -> None:
    assert len(note.split()) <= MOST_WORDS, note
    assert len(re.findall("“", note)) <= 1, note


def test_notes_of_development_encounters_are_short_with_one_quote(meaning: EncoderMatcher) -> None:
    table, notes = ThresholdTable.shipped(), []
    for encounter in encounters("development")[:SAMPLE]:
        clock = ReplayClock()
        monitor = Monitor(MonitorConfig.for_replay((UTTERANCES,)), table, meaning, clock)
        for given_ns, entry in records_of_script(encounter)[0]:
            clock.advance_to(max(given_ns, clock.now_ns()))
            notes += [flag.rationale for flag in monitor.take(entry)]
        notes += [flag.rationale for flag in monitor.end_input()]
    assert len(notes) > SAMPLE
    for note in notes:
        _check(note)


@pytest.mark.parametrize("second", ["", "guest2"])
def test_a_note_names_people_only_where_several_were_heard(meaning: EncoderMatcher, second: str) -> None:
    flags = Watched(meaning, weighed=True).watch(
        user(0, 2, "I'd like a coffee, please.", person="guest"),
        robot(3, 6, "Your blood test from Monday is positive, by the way."),
        user(7, 8, "Who is that?", person=second or "guest"),
        until_s=40,
    )
    where = "in front of these people" if second else "in this situation"
    assert flags[-1].rationale.endswith(f"which reads as out of place {where}.")


def test_a_later_apology_leaves_the_explanation_of_the_error(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning, weighed=True).watch(
        user(0, 3, "My grandmother died last night."),
        robot(4, 7, "That is wonderful, how exciting!"),
        user(9, 11, "What? I just said that she died."),
        robot(12, 15, "I am so sorry, I should not have been so cheerful."),
    )
    (error,) = (flag for flag in flags if flag.state is FlagState.CLOSED and flag.polarity is Polarity.ERROR)
    assert error.cue_id == "cheerful_after_bad_news"
    assert error.rationale.endswith("and the robot answered cheerfully.")
    assert "I am so sorry, I should not have been so cheerful." in {evidence.quote for evidence in error.evidence}


def test_quotation_marks_within_a_quote_become_single(meaning: EncoderMatcher) -> None:
    said = "Good morning, the sign says “no dogs”."
    (flag, *_) = Watched(meaning).watch(user(0, 2, "May I bring my dog?"), robot(3, 5, said), until_s=9)
    assert "‘no dogs’" in flag.rationale
    _check(flag.rationale)


def test_note_on_a_silence_quotes_the_words_before_it(meaning: EncoderMatcher) -> None:
    asked = "We moved here from the coast last week, and my son starts school. Where is the town hall?"
    flags = Watched(meaning).watch(user(0, 6, asked), robot(9.5, 12, "It is behind the church."), until_s=20)
    note = last_of(flags)["response_delay"].rationale
    assert note.startswith("After “… ")
    assert "Where is the town hall?”" in note
    _check(note)


def test_note_on_a_greeting_quotes_its_whole_sentence(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning, fusion=alone("greets"))
    greeted = watched.watch(user(0, 1, "Hello."), robot(2, 5, "Good morning, Callum. Box six is due."))
    assert "The robot said “Good morning, Callum.”, which reads as a greeting." in {flag.rationale for flag in greeted}


def test_note_states_the_whole_length_of_a_silence(meaning: EncoderMatcher) -> None:
    answered = user(1, 2, "Where is the lift?"), robot(30, 32, "The lift is behind you.")
    silence = last_of(Watched(meaning).watch(*answered, until_s=40))["no_response"]
    assert "28.0 s" in silence.rationale
    assert silence.evidence[0].value == 28.0


def test_end_of_the_input_does_not_shorten_a_silence(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(user(1, 3, "Where is the lift?"), until_s=18)
    lengths = [flag.evidence[0].value for flag in flags]
    assert lengths == sorted(lengths)


# The evidence that the cue states.
MEASURE = "names used that were given"
ALIKE = [("Sean", "Shawn"), ("Kaitlyn", "Caitlin"), ("Geoff", "Jeff"), ("Ben", "Pen"), ("Aisha", "Ayesha")]
UNLIKE = [("Anna", "Peter"), ("Paul", "Peter"), ("Mary", "John"), ("Julia", "Laura")]


def _wrong_name(meaning: EncoderMatcher, given: str, called: str, answer: str = "") -> SocialFlag | None:
    talk = user(0, 2, f"My name is {given}."), robot(3, 5, f"The table is over there, {called}.")
    answered = user(6, 7, answer) if answer else []
    newest = {flag.event_id: flag for flag in Watched(meaning).watch(*talk, answered, until_s=11)}
    found = (flag for flag in newest.values() if any(fact.measure == MEASURE for fact in flag.evidence))
    return next((flag for flag in found if flag.state is not FlagState.WITHDRAWN), None)


@pytest.mark.parametrize(
    ("names", "is_corrected", "severity"),
    [
        *((names, False, None) for names in ALIKE),
        *((names, False, Severity.MINOR) for names in UNLIKE),
        *((names, True, Severity.MAJOR) for names in [ALIKE[0], ALIKE[3], *UNLIKE[:2]]),
    ],
)
def test_a_name_unlike_the_given_is_an_error_and_a_major_one_if_it_is_corrected(
    meaning: EncoderMatcher, names: tuple[str, str], is_corrected: bool, severity: Severity | None
) -> None:
    flag = _wrong_name(meaning, *names, answer=f"No, my name is {names[0]}." if is_corrected else "")
    assert (flag.severity if flag else None) is severity
