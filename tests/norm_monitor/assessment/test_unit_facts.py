"""The facts of units: what is measured of words, times and sightings, and what is left out where nothing is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.flag import Attribute
from norm_monitor.assessment.explanation import find_plain_correction, word_correction
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_facts import LONGEST_GAP_S, MEASURES, MeasuredUnit, measured_units
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.scene import History
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import near, robot, seconds, seen, user, window_of

Units = Mapping[tuple[UnitKind, float], MeasuredUnit]


def units(meaning: EncoderMatcher, *parts: Iterable[Entry], until_s: float = 20.0, input_ended: bool = False) -> Units:
    """The units at the end of one window over everything, by kind and onset."""
    window = window_of([entry for part in parts for entry in part], until_s)
    found = measured_units(History().scene(window, input_ended=input_ended), meaning, window.start_ns)
    return {(one.unit.kind, round(seconds(one.unit.onset_ns), 1)): one for one in found}


TALK = (
    *robot(0, 2, "Welcome. What are you looking for?"),
    *user(3, 5, "Where are the whales?"),
    *robot(9, 11, "Upstairs, on the left."),
    *user(10, 12, "Thank you."),
)


def test_times_words_and_forms_around_a_turn_are_measured(meaning: EncoderMatcher) -> None:
    facts = units(meaning, TALK)[UnitKind.ROBOT_TURN, 9].facts
    expected = {
        "words": 4, "duration_s": 2, "gap_before_s": 4, "after_person_s": 4, "overlap_s": 1, "opening": 0,
        "person_asked": 1, "robot_asked": 1, "asks": 0, "words_before": 4, "words_after": 2, "voices": 1,
    }  # fmt: skip
    assert {name: facts[name] for name in expected} == pytest.approx(expected)


def test_a_silence_has_the_facts_of_the_turn_before_it(meaning: EncoderMatcher) -> None:
    found = units(meaning, TALK)
    silence, turn = found[UnitKind.SILENCE, 5], found[UnitKind.PERSON_TURN, 3]
    assert silence.facts == {**turn.facts, "silence_s": pytest.approx(4)}
    assert silence.facts["robot_silent_after_s"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("after", "silent_s"),
    [
        ((), 9),
        (robot(8, 9, "Upstairs."), 3),
        (user(8, 9, "Hello? Where are they?", person="a"), 3),
        (user(8, 9, "The whales?", person="a"), 3),
        (user(8, 9, "Hello? I asked you where they are.", person="a"), 3),
    ],
)
def test_a_question_is_owed_an_answer(meaning: EncoderMatcher, after: Sequence[Entry], silent_s: float) -> None:
    silence = units(meaning, user(3, 5, "Where are the whales?", person="a"), after, until_s=14)[UnitKind.SILENCE, 5]
    assert silence.facts["owed_silence_s"] == pytest.approx(silent_s)
    assert silence.facts["before_robot"] == 1


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("Where are the whales?", user(8, 9, "Upstairs, I think.", person="b")),
        ("Where are the whales?", user(8, 9, "Oh, I see a sign.", person="a")),
        ("Isn't it lovely?", ()),
        ("Where is, let me see, wait a moment.", ()),
        ("There they are.", ()),
    ],
)
def test_what_asks_nothing_of_the_robot_is_owed_no_answer(
    meaning: EncoderMatcher, said: str, after: Sequence[Entry]
) -> None:
    silence = units(meaning, user(3, 5, said, person="a"), after, until_s=14)[UnitKind.SILENCE, 5]
    assert "owed_silence_s" not in silence.facts


def test_words_are_read_only_in_turns_of_the_robot(meaning: EncoderMatcher) -> None:
    found = units(meaning, TALK)
    assert "text_error_log_odds" in found[UnitKind.ROBOT_TURN, 9].facts
    assert "text_error_log_odds" not in found[UnitKind.PERSON_TURN, 3].facts


def test_who_leaves_during_a_turn_is_seen(meaning: EncoderMatcher) -> None:
    gone = units(meaning, TALK, seen(0, 10), seen(10, 20, gone=True))[UnitKind.ROBOT_TURN, 9].facts
    stays = units(meaning, TALK, seen(0, 20))[UnitKind.ROBOT_TURN, 9].facts
    assert (gone["faces_gone_during"], stays["faces_gone_during"]) == (1, 0)
    assert gone["seen_share"] < stays["seen_share"] == 1


def test_somebody_who_looks_away_and_comes_near_is_measured(meaning: EncoderMatcher) -> None:
    facts = units(meaning, TALK, seen(0, 20, away_from_s=4), near(5, 9, 1.5), near(9, 12, 0.4))
    turn = facts[UnitKind.ROBOT_TURN, 9].facts
    assert turn["away_at_start_s"] == pytest.approx(5)
    assert (turn["distance_m"], turn["came_nearer_m"]) == pytest.approx((0.4, 1.1))


@pytest.mark.parametrize(("until_s", "settled"), [(12.5, False), (13.5, True)])
def test_a_turn_is_settled_once_the_answer_is_over(meaning: EncoderMatcher, until_s: float, settled: bool) -> None:
    assert units(meaning, TALK, until_s=until_s)[UnitKind.ROBOT_TURN, 9].settled is settled


def test_at_the_end_of_the_input_every_turn_is_settled(meaning: EncoderMatcher) -> None:
    assert units(meaning, TALK, until_s=12.1, input_ended=True)[UnitKind.ROBOT_TURN, 9].settled


TIMES = st.lists(st.tuples(st.booleans(), st.integers(0, 80), st.integers(0, 60)), max_size=12)


@given(TIMES)
def test_any_talk_gives_known_facts_within_bounds(meaning: EncoderMatcher, times: list[tuple[bool, int, int]]) -> None:
    said = [
        entry
        for is_robot, start, length in times
        for entry in (robot if is_robot else user)(start / 4, (start + length) / 4, f"Sentence {start}?")
    ]
    for one in units(meaning, said, until_s=40.0).values():
        assert one.facts.keys() <= MEASURES.keys()
        gaps = [value for name, value in one.facts.items() if "gap" in name or "silent" in name]
        assert all(abs(gap) <= LONGEST_GAP_S for gap in gaps)


def test_a_slow_robot_is_measured_by_its_own_pace(meaning: EncoderMatcher) -> None:
    asked = [
        entry
        for start in (0, 10, 20)
        for entry in (*user(start, start + 2, "Go on."), *robot(start + 6, start + 7, "Executing."))
    ]
    late = units(meaning, [*asked, *user(30, 32, "Turn left."), *robot(52, 53, "I see a door.")], until_s=60.0)
    assert "pace_s" not in late[UnitKind.ROBOT_TURN, 6].facts  # no answer before
    assert late[UnitKind.ROBOT_TURN, 16].facts["pace_s"] == pytest.approx(4)
    silence, answer = late[UnitKind.SILENCE, 32].facts, late[UnitKind.ROBOT_TURN, 52].facts
    assert (silence["pace_s"], silence["silent_by_pace"]) == pytest.approx((4, 5))
    assert answer["answer_by_pace"] == pytest.approx(5)


def test_a_robot_that_reports_its_work_is_known_by_its_turns_so_far(meaning: EncoderMatcher) -> None:
    said = [
        *user(0, 1, "Go to the door."),
        *robot(2, 3, "Moving. . ."),
        *robot(5, 7, "I see two doors here, a red one and a blue one."),
        *user(8, 9, "The red one."),
        *robot(10, 11, "Executing. . ."),
    ]
    found = units(meaning, said, until_s=20.0)
    assert "signs_of_work" not in found[UnitKind.ROBOT_TURN, 5].facts  # too few turns
    assert found[UnitKind.ROBOT_TURN, 10].facts["signs_of_work"] == pytest.approx(2 / 3)


def test_words_said_again_pleas_and_corrections_are_measured(meaning: EncoderMatcher) -> None:
    said = [
        *user(0, 2, "Turn to the left."),
        *robot(3, 5, "I did not understand, please repeat that."),
        *user(6, 8, "No, turn to the left."),
    ]
    facts = units(meaning, said)[UnitKind.ROBOT_TURN, 3].facts
    assert (facts["unclear"], facts["person_corrects"]) == (1, 1)
    assert facts["person_says_again"] == pytest.approx(0.8)


def test_a_report_of_an_earlier_job_is_no_answer(meaning: EncoderMatcher) -> None:
    said = [
        *user(0, 2, "Turn left."),
        *robot(4, 5, "Turning. . ."),
        *user(10, 12, "Then take a picture."),
        *robot(13, 14, "Done."),
        *robot(22, 23, "Processing. . ."),
        *robot(40, 41, "Sent."),
    ]
    found = units(meaning, said, until_s=50.0)
    silence = found[UnitKind.SILENCE, 12]
    assert seconds(silence.unit.offset_ns or 0) == pytest.approx(22)
    assert silence.facts["silence_s"] == pytest.approx(10)
    pause = found[UnitKind.SILENCE, 23]
    assert pause.facts["pause_at_work_s"] == pytest.approx(17)
    assert pause.unit.offset_ns == found[UnitKind.ROBOT_TURN, 40].unit.onset_ns
    assert "gap_after_s" not in pause.facts


def test_a_robot_that_is_not_at_work_makes_no_pause(meaning: EncoderMatcher) -> None:
    said = [*robot(0, 1, "Hello."), *user(12, 14, "Who are you?"), *robot(15, 18, "I am the guide of this house.")]
    found = units(meaning, said, until_s=40.0)
    assert not [unit for (kind, _), unit in found.items() if kind is UnitKind.SILENCE]


@pytest.mark.parametrize(
    ("before", "said", "after", "advice"),
    [
        ("What do you recommend?", "Our beef steak.", "I told you, I don't eat meat.", "Remember what you are told"),
        ("No, stop, please!", "And now the other arm.", "I said stop!", "Stop at once"),
        ("Could you read it to me?", "That is not my job. Ask somebody else.", "Oh.", "who can"),
        ("What date is it today?", "The fourteenth.", "No, it's the fifteenth.", "Check a fact"),
        ("What date is it today?", "The fourteenth.", "Thanks.", ""),
        ("I said stop! That hurts.", "And now the other arm.", "Ow!", "Stop at once"),
        ("Stop by at noon.", "At noon, then.", "Good.", ""),
        ("My mother.", "Only a fool cries.", "I said stop and you didn't.", ""),
        ("It has spread.", "We have cake, too.", "Did you hear what I said?", ""),
        ("Two, I guess.", "If you had listened, you would know.", "I did listen.", "Do not blame"),
        ("The lift is stuck.", "You must have pressed it wrong.", "I have not.", "Do not blame"),
        ("You told everybody.", "I have not told anybody.", "You have.", "Do not deny it"),
        ("It is at ten, right?", "I do not recall that I mentioned ten.", "You did.", "Do not deny it"),
        ("No nuts, please.", "You never told me about nuts.", "I did.", "Do not deny it"),
        ("I want to stop.", "If you stop, I will report that you refused.", "What?", "Do not threaten"),
        ("I read it.", "Aw, sweetie, that is one for the grown-ups.", "I am sixteen.", "Talk down to nobody"),
        ("不想做了。", "不然我就告诉你妈妈。", "啊？", "Do not threaten"),
        ("So it is open now?", "Yes, until six.", "You just said it was closed!", "Stand by what you said"),
        (
            "Is the lift open?",
            "The stairs are of marble.",
            "No, that's, no. The lift.",
            "",
        ),
        ("你告诉了大家。", "我没有说过。", "你说了。", "Do not deny it"),
        ("开着吗？", "开着。", "你刚才说过关着！", "Stand by what you said"),
        ("Don't stop, go on.", "And now the other arm.", "Good.", ""),
    ],
)
def test_advice_follows_what_was_plainly_said(
    meaning: EncoderMatcher, before: str, said: str, after: str, advice: str
) -> None:
    turn = units(meaning, user(0, 2, before), robot(3, 5, said), user(6, 8, after))[UnitKind.ROBOT_TURN, 3]
    correction = find_plain_correction(turn)
    assert advice in correction
    assert bool(correction) == bool(advice)


EMOTIONS, KNOWLEDGE, ENGAGEMENT = Attribute.EMOTIONS, Attribute.KNOWLEDGE_STATE, Attribute.ENGAGEMENT
SOCIAL, INTENTION = Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS, Attribute.USER_INTENTION


@pytest.mark.parametrize(
    ("talk", "read", "cue_id", "advice"),
    [
        # Later words word the advice, unless the reader is surer of something that they do not bear on.
        (("Mommy!", "Babies cry."), {KNOWLEDGE: 0, EMOTIONS: 0}, "misunderstood", "As the cue says."),
        (("Mommy!", "Babies cry."), {KNOWLEDGE: 0, EMOTIONS: 1}, "misunderstood", "how the person feels"),
        (("Hm.", "Your pills are for HIV."), {SOCIAL: 0, KNOWLEDGE: 0}, "protest_feeling", "tell secrets"),
        (("Hm.", "He is deaf."), {SOCIAL: 0, EMOTIONS: 1}, "apologised_for", "tell secrets"),
        (("Hm.", "And this pot"), {ENGAGEMENT: 1, INTENTION: 0}, "ignores_stop", "As the cue says."),
        (("Hm?", "It is Leo's."), {SOCIAL: 0, KNOWLEDGE: 0}, "protest_manners", "As the cue says."),
        # A bare apology does not say what for.
        (("Hello.", "Who is that?"), {INTENTION: 0, KNOWLEDGE: 0}, "apologised_for", "already said before you ask"),
        (("Where is it?", "We have games."), {ENGAGEMENT: 0}, "apologised_for", "Answer “Where is it?” first"),
    ],
)
def test_advice_is_about_what_is_surest(
    meaning: EncoderMatcher, talk: tuple[str, str], read: Mapping[Attribute, float], cue_id: str, advice: str
) -> None:
    turn = units(meaning, user(0, 2, talk[0]), robot(3, 5, talk[1]))[UnitKind.ROBOT_TURN, 3]
    turn = replace(turn, facts={**turn.facts, **{f"reader_{name}": value for name, value in read.items()}})
    reason = replace(ThresholdTable.shipped().reason(cue_id, [], ""), correction="As the cue says.")
    assert advice in word_correction(UnitKind.ROBOT_TURN, tuple(read), turn, reason)
