"""Texts from outside are cut at the border, counted and stated; everything else passes as it is."""

from dataclasses import replace
from types import SimpleNamespace as Fields
from typing import Any

import pytest

from norm_core.bags.types import make
from norm_core.health.health_log import HealthLog
from norm_core.records.decision import OtherAgent
from norm_core.records.episode import Query
from norm_core.records.messages import from_message, to_message
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.records.text_limits import MAX_ITEMS, MAX_SPEECH_CHARACTERS, MAX_TEXT_CHARACTERS, cut_texts
from norm_monitor.ears import Ears
from norm_monitor.senses.people.adapter import MAX_ID_CHARACTERS, PeopleAdapter, PeopleConfig
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS

LONG = "x " * 1_000_000
OTHER = OtherAgent(agent_id="o", doing="d")
ASKED = Query(stamp_ns=0, query_id="q", episode_id="e", task="t", options=("a", ""), others=(OTHER,))
WORD = Word(text="hi", start_ns=0, end_ns=1)
SAID = Utterance(stamp_ns=0, utterance_id="u", speaker=Speaker.USER, text="hi", start_ns=0, end_ns=1, words=(WORD,))


@pytest.mark.parametrize("record", [SAID, ASKED])
def test_a_record_of_usual_length_is_the_same_object(record: object) -> None:
    assert cut_texts(record)[0] is record


@pytest.mark.parametrize(
    ("record", "cut", "count"),
    [
        (replace(SAID, text=LONG, locale=LONG), replace(SAID, text=LONG[:2000], locale=LONG[:2000]), 2),
        (replace(SAID, words=(replace(WORD, text=LONG),)), replace(SAID, words=(replace(WORD, text=LONG[:2000]),)), 1),
        (replace(SAID, words=(WORD,) * 5000), replace(SAID, words=(WORD,) * MAX_ITEMS), 1),
        (
            replace(ASKED, options=("a", LONG), others=(replace(OTHER, doing=LONG),)),
            replace(
                ASKED,
                options=("a", LONG[:MAX_TEXT_CHARACTERS]),
                others=(replace(OTHER, doing=LONG[:MAX_TEXT_CHARACTERS]),),
            ),
            2,
        ),
    ],
    ids=["texts", "word", "words", "options"],
)
def test_a_message_that_is_too_long_is_cut_and_counted(record: Any, cut: object, count: int) -> None:
    counts: list[int] = []
    assert from_message(type(record), to_message(record, lambda name, values: Fields(**values)), counts.append) == cut
    assert counts == [count]


MESSAGES: dict[str, Any] = {
    "String": lambda text: make("std_msgs/msg/String", {"data": text}),
    "TTS": lambda text: Fields(goal=Fields(input=text, locale="en_US")),
    "sound_play": lambda text: Fields(sound=-3, command=1, arg=text, arg2=""),
    "feedback": lambda text: Fields(feedback=Fields(word=text)),
    "RobotSpeech": lambda text: RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START, text=text),
}
TEXTS = {"words": LONG, "tags": "<" * 2_000_000, "gestures": "^a(" * 700_000, "slashes": "\\a=" * 700_000}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", MESSAGES)
def test_the_robots_long_text_is_cut_in_what_the_ears_give(kind: str, text: str) -> None:
    health_log = HealthLog()
    ears = Ears(CONFIG, health_log)
    (start, *_) = list(ears.take_robot_speech(MESSAGES[kind](TEXTS[text]), START_NS, "/say"))
    assert isinstance(start, RobotSpeech)
    assert len(start.text) <= MAX_SPEECH_CHARACTERS
    assert {c.name: c.count for c in health_log.counters}["texts_cut"] >= 1
    assert health_log.reasons == (
        "texts: some that came were too long and were cut; let their publisher send shorter ones",
    )


def test_a_recognizers_long_text_is_cut_and_counted() -> None:
    health_log = HealthLog()
    ears = Ears(CONFIG, health_log)
    (utterance,) = ears.take_words(Fields(final=LONG, incremental="", locale="en"), START_NS)
    assert isinstance(utterance, Utterance)
    assert utterance.text == LONG[:MAX_SPEECH_CHARACTERS]
    assert {c.name: c.count for c in health_log.counters}["texts_cut"] == 1


def test_long_ids_of_people_are_cut_and_counted() -> None:
    adapter = PeopleAdapter(PeopleConfig(), "people")
    adapter.ids(Fields(ids=[LONG, "a"]), START_NS)
    assert adapter.tracked_ids == (LONG[:MAX_ID_CHARACTERS], "a")
    assert adapter.counts["texts_cut"] == 1
