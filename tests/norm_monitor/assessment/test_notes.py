"""Notes read like a coder's: short, one quote, no certainty about what is only suggested or may be misheard."""

import re

import pytest

from norm_core.records.flag import FlagState, Polarity
from norm_core.records.speech import Timing
from norm_core.runtime.time import ReplayClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import encounters
from norm_monitor.monitor import Monitor, MonitorConfig
from sim_replays.monitor_bench.script_driver import records_of_script
from tests.norm_monitor.assessment.test_reasons import reasons_in
from tests.norm_monitor.encounter_talk import Watched, robot, seconds, user

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
    said = reasons_in(meaning, robot(3, 5, "Good morning, the sign says “no dogs”. That was my fault."))
    note = said["greets"].rationale
    assert "‘no dogs’" in note
    _check(note)


def test_end_of_the_input_does_not_shorten_a_silence(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(user(1, 3, "Where is the lift?"), until_s=18)
    lengths = [flag.evidence[0].value for flag in flags]
    assert lengths == sorted(lengths)


def test_who_asks_once_more_has_waited_since_the_first_time(meaning: EncoderMatcher) -> None:
    asked, once_more = user(0, 2, "Where can I buy a ticket?"), user(6, 7, "I said, where can I get one?")
    flags = Watched(meaning).watch(asked, once_more, robot(10, 12, "At the counter."))
    waited = [flag for flag in flags if seconds(flag.onset_ns) == pytest.approx(2)]
    assert waited[-1].cue_id == "no_response"
    assert seconds(waited[-1].known_until_ns) == pytest.approx(10)


def test_words_without_times_raise_no_timing_flags(meaning: EncoderMatcher) -> None:
    untimed = user(0, 0, "Where can I buy a ticket?", timing=Timing.ABSENT)
    assert Watched(meaning).watch(untimed, robot(9, 11, "At the counter.")) == []
