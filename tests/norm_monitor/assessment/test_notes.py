"""Notes read like those of a coder: short, with one quote."""

import json
from pathlib import Path

import pytest

from norm_core.records.flag import FlagState, Polarity
from norm_core.records.speech import Timing
from norm_monitor.context.meaning import EncoderMatcher
from tests.norm_monitor.assessment.test_reasons import reasons_in
from tests.norm_monitor.encounter_talk import Watched, robot, seconds, user

MAX_WORDS = 30
GOLDEN_FLAGS = Path(__file__).parents[2] / "goldens/data/development_by_script.jsonl"


def test_notes_of_development_encounters_are_short_with_one_quote() -> None:
    rows = [json.loads(line)[1] for line in GOLDEN_FLAGS.read_text(encoding="utf-8").splitlines()]
    notes = [row["flag"]["rationale"] for row in rows if "flag" in row]
    assert len(notes) > 500
    assert [note for note in notes if len(note.split()) > MAX_WORDS or note.count("“") > 1] == []


@pytest.mark.parametrize("second", ["", "guest2"])
def test_note_mentions_people_if_several_were_heard(meaning: EncoderMatcher, second: str) -> None:
    flags = Watched(meaning, weighed=True).watch(
        user(0, 2, "I'd like a coffee, please.", person="guest"),
        robot(3, 6, "Your blood test from Monday is positive, by the way."),
        user(7, 8, "Who is that?", person=second or "guest"),
        until_s=40,
    )
    where = "in front of these people" if second else "in this situation"
    assert flags[-1].rationale.endswith(f"which reads as out of place {where}.")


def test_later_apology_keeps_the_explanation_of_an_error(meaning: EncoderMatcher) -> None:
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
    reasons = reasons_in(meaning, robot(3, 5, "Good morning, the sign says “no dogs”. That was my fault."))
    note = reasons["greets"].rationale
    assert "‘no dogs’" in note
    assert note.count("“") == 1


def test_silence_begins_with_the_first_of_two_questions(meaning: EncoderMatcher) -> None:
    question, repetition = user(0, 2, "Where can I buy a ticket?"), user(6, 7, "I said, where can I get one?")
    flags = Watched(meaning).watch(question, repetition, robot(10, 12, "At the counter."))
    silences = [flag for flag in flags if seconds(flag.onset_ns) == pytest.approx(2)]
    assert silences[-1].cue_id == "no_response"
    assert seconds(silences[-1].known_until_ns) == pytest.approx(10)


def test_words_without_times_raise_no_timing_flags(meaning: EncoderMatcher) -> None:
    untimed = user(0, 0, "Where can I buy a ticket?", timing=Timing.ABSENT)
    assert Watched(meaning).watch(untimed, robot(9, 11, "At the counter.")) == []
