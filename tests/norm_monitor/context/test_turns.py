from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Timing, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.turns import MAX_SPEECH_NS, Turn, turns_of
from norm_monitor.context.wording import (
    clauses,
    find_last_question,
    is_backchannel,
    is_filler,
    is_question,
    sentences,
    tokens,
    word_count,
)
from tests.norm_monitor.encounter_talk import at, robot, seconds, user


def turns(*entries: object, until_s: float = 60) -> tuple[Turn, ...]:
    return turns_of(
        (e for e in entries if isinstance(e, Utterance)),
        (e for e in entries if isinstance(e, RobotSpeech)),
        at(until_s),
    )


def echo(start_s: float, end_s: float, text: str) -> Utterance:
    """What the microphone hears of the robot's voice."""
    [heard] = user(start_s, end_s, text)
    assert isinstance(heard, Utterance)
    return replace(heard, speaker=Speaker.ROBOT)


@pytest.mark.parametrize(
    ("entries", "texts"),
    [
        ([*user(0, 1, "I'd like"), *user(1.9, 3, "two tickets."), *user(4.1, 5, "Now.")],
         ["I'd like two tickets.", "Now."]),
        ([*user(0, 1, "I'd like"), *robot(1.1, 1.4, "Yes?"), *user(1.5, 3, "tickets.")],
         ["I'd like", "Yes?", "tickets."]),
        ([*user(0, 1, "One.", person="anna"), *user(1.2, 2, "Two.", person="ben")], ["One.", "Two."]),
        ([*robot(0, 2, "Hello and welcome"), echo(0.1, 2.1, "Hello an welcome")], ["Hello and welcome"]),
        # A command to speak tells no times: its voice is heard before or after the estimate, and for longer.
        *(([*robot(5, 5.6, "Yes."), echo(start_s, end_s, "yes")], ["Yes."])
          for start_s, end_s in ((5.5, 6.4), (5.9, 6.6), (4.0, 4.7), (4.4, 6.1))),
        ([*robot(0, 0.6, "Yes."), echo(1.0, 2.4, "Platform nine.")], ["Yes. Platform nine."]),
        ([*robot(0, 0.6, "Yes."), echo(4.0, 4.5, "Yes.")], ["Yes.", "Yes."]),  # said again, much later
    ],
)  # fmt: skip
def test_a_turn_ends_with_a_pause_or_another_speaker_and_what_is_heard_of_the_robot_counts_once(
    entries: list[object], texts: list[str]
) -> None:
    assert [turn.text for turn in turns(*entries)] == texts


def test_words_of_a_speaking_robot_count_once_in_a_window() -> None:
    """The utterance is whole in the window in which it begins; of the robot's own account there is the start alone."""
    [begun, _] = robot(0, 8, "At night the pool is cooled.")
    [turn] = turns(begun, echo(-0.1, 8.2, "Add multiple school of day"), until_s=3)
    assert (turn.text, turn.ongoing) == ("At night the pool is cooled.", True)


def test_a_robot_that_has_not_stopped_is_speaking_still() -> None:
    [begun, _] = robot(0, 5, "A long story")
    [turn] = turns(begun, until_s=3)
    assert (turn.ongoing, seconds(turn.end_ns)) == (True, 3)


def test_a_stop_that_never_comes_ends_by_itself() -> None:
    [begun, _] = robot(0, 5, "Lost")
    [turn] = turns(begun, until_s=500)
    assert (turn.ongoing, turn.end_ns - turn.start_ns) == (False, MAX_SPEECH_NS)


def test_a_stop_without_a_start_is_no_turn() -> None:
    assert turns(RobotSpeech(stamp_ns=at(1), speech_id="x", state=SpeechEdge.STOP)) == ()


def test_utterances_without_times_are_marked_so() -> None:
    [turn] = turns(*user(0, 0, "When was that?", timing=Timing.ABSENT))
    assert not turn.timed


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 5), st.booleans()), max_size=20, unique_by=lambda x: x[0]))
def test_turns_keep_all_words_in_order_of_onset(said: list[tuple[float, float, bool]]) -> None:
    entries = [
        entry
        for start_s, length_s, is_by_robot in said
        for entry in (robot if is_by_robot else user)(start_s, start_s + length_s, f"w{start_s}")
    ]
    found = turns(*entries, until_s=200)
    words = [word for turn in found for word in turn.text.split()]
    assert sorted(words) == sorted(f"w{start_s}" for start_s, *_ in said)
    assert [turn.start_ns for turn in found] == sorted(turn.start_ns for turn in found)
    for turn in found:
        assert (
            turn.active_ns(turn.start_ns, turn.end_ns) <= turn.end_ns - turn.start_ns + len(turn.spans) * 5 * NS_PER_S
        )


def test_a_robot_that_starts_anew_has_ended_what_it_said_before() -> None:
    [lost, _], again = robot(0, 5, "A long story"), robot(40, 42, "Good morning.")
    found = [(seconds(turn.start_ns), turn.text, turn.ongoing) for turn in turns(lost, again[0], until_s=41)]
    assert found == [(0, "A long story", False), (40, "Good morning.", True)]
    assert seconds(turns(lost, *again)[0].end_ns) < 2


@pytest.mark.parametrize(
    ("function", "expected", "texts"),
    [
        (word_count, 0, ["", "...!?"]),
        (word_count, 2, ["Hello there", "你好吗？", "去 platform 九"]),
        (word_count, 3, ["I don't know."]),
        (is_backchannel, True, ["Mm-hm.", "okay", "Oh, I see.", "Yeah, yeah.", "嗯。", "好的", ""]),
        (is_backchannel, False, ["Okay, but where is it?", "I see a dog.", "No.", "好的我们走吧"]),
        (is_filler, True, ["Um,", "Let me see.", "One moment, please.", "Just a second.", "请稍等"]),
        (is_filler, False, ["", "The museum opens at nine.", "One ticket costs five euros and a child two."]),
        (is_question, True, ["where is the exit", "And you?", "Well, can I go now", "洗手间在哪里", "是吗"]),
        (is_question, False, ["", "I know where it is.", "Thank you.", "我在这里"]),
        (find_last_question, "Where do I pay?", ["Hi. How are you? I came by bus. Where do I pay? Thanks."]),
        (clauses, ("See you", "good night."), ["See you, and good night."]),
        (clauses, (), ["No commas here."]),
        (
            sentences,
            ("Where is Mr. Fuller?", "Ask Mrs. Li or Dr. Ito."),
            ["Where is Mr. Fuller? Ask Mrs. Li or Dr. Ito."],
        ),
        (sentences, ("It is 2.50 euros.", "I pay by card."), ["It is 2.50 euros. I pay by card."]),
        (sentences, ("I need a dr.",), ["I need a dr."]),
    ],
)
def test_wording_in_both_languages(function: Callable[[str], Any], expected: Any, texts: list[str]) -> None:
    assert [function(text) for text in texts] == [expected] * len(texts)


@given(st.text())
def test_sentences_lose_no_word_and_hold_one_each(text: str) -> None:
    parts = sentences(text)
    assert [token for part in parts for token in tokens(part)] == [*tokens(text)]
    assert all(tokens(part) for part in parts)
