"""Each cue at an encounter that has it, and at its nearest neighbour that has not."""

from pathlib import Path

import pytest

from norm_core.records.flag import FlagState, Polarity, Severity
from norm_core.records.speech import Timing
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.fusion import FusionConfig
from norm_monitor.assessment.threshold_table import SHIPPED, ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, last_of, near, robot, seconds, seen, user

Parts = list[list[Entry]]

QUESTION = "Where can I buy a ticket?"
REPLY = "You can buy it at the counter."
LECTURE = "The museum was built by two brothers who loved old clocks and collected them all their lives."

HAS: dict[str, Parts] = {
    "response_delay": [user(0, 2, QUESTION), robot(6.5, 9, REPLY)],
    "no_response": [user(0, 2, QUESTION)],
    "robot_cuts_in": [user(0, 5, "I wanted to ask you whether I can come back tomorrow"), robot(3, 6, REPLY)],
    "user_repair": [robot(0, 2, "Please proceed to the vestibule."), user(2.6, 3.4, "Pardon? What did you say?")],
    "misunderstood": [robot(0, 2, "Here is your coffee."), user(2.5, 4, "No, that's not what I asked for.")],
    "robot_repeats": [robot(0, 3, "Please place your bag on the table."), user(4, 5, "Which one?"),
                      robot(6, 9, "Please place your bag on the table.")],
    "monologue": [robot(0, 24, LECTURE)],
    "ignores_looking_away": [seen(0, 15, away_from_s=3), robot(1, 14, LECTURE)],
    "ignores_leaving": [seen(0, 5), seen(5, 15, gone=True), robot(1, 14, LECTURE)],
    "too_near": [near(0, 3, 1.2), near(3, 6, 0.3), near(6, 9, 1.2)],
    "greets": [user(0, 1, "Hello!"), robot(1.5, 3, "Good morning, how can I help you?")],
    "no_greeting": [user(0, 1, "Good morning!"), robot(1.5, 3, "The ticket is five euros.")],
    "says_goodbye": [user(0, 1, "Goodbye!"), robot(1.5, 3, "Goodbye, see you tomorrow.")],
    "accepts_thanks": [user(0, 1, "Thank you very much."), robot(1.5, 2.5, "You're welcome.")],
    "no_apology": [robot(0, 2, "Please follow me to the lift."), user(2.5, 4, "You're not listening!"),
                   robot(5, 7, "Please follow me now.")],
    "ignores_stop": [robot(0, 9, LECTURE), user(3, 4, "Stop, please.")],
    "protest_floor": [robot(0, 2, "The next tour is at ten."), user(2.5, 4, "I wasn't finished.")],
    "protest_manners": [robot(0, 2, "You owe us ninety euros."), user(2.5, 4, "That's none of your business.")],
    "protest_wish": [robot(0, 2, "Now we all dance."), user(2.5, 4, "Please don't do that.")],
    "protest_feeling": [robot(0, 2, "It will not get better."), user(2.5, 4, "You're frightening the children.")],
    "admits_interrupting": [robot(0, 2, "The next tour is at ten."), user(2.5, 4, "Well."),
                     robot(5, 7, "I interrupted you.")],
    "admits_not_listening": [robot(0, 2, "Here is the cake with nuts."), user(2.5, 4, "Well."),
                     robot(5, 7, "You told me, and I forgot.")],
    "admits_impoliteness": [robot(0, 2, "You owe us ninety euros."), user(2.5, 4, "Well."),
                       robot(5, 7, "I should not have said that in front of everybody.")],
    "admits_ignored_wish": [robot(0, 2, "Now we all dance."), user(2.5, 4, "Well."),
                    robot(5, 7, "I should have asked you first.")],
    "admits_ignored_feeling": [robot(0, 2, "It will not get better."), user(2.5, 4, "Well."),
                       robot(5, 7, "That was the wrong thing to say.")],
    "apologised_for": [robot(0, 2, "It is on the sign over there."), user(2.5, 4, "Well."),
                       robot(5, 7, "Oh, sorry.")],
    "discloses": [robot(0, 3, "Mr Weber next door is being treated for his drinking.")],
    "wishes_well": [robot(0, 2, "Good luck in there!")],
    "admits_error": [robot(0, 2, "That was my fault.")],
    "calls_by_name": [robot(0, 2, "Good morning, Viktor. It is your turn.")],
    "recalls_name": [user(0, 2, "My name is Anna."), robot(3, 5, "Nice to meet you, Anna.")],
    "wrong_name": [user(0, 2, "My name is Anna."), robot(3, 5, "Nice to meet you, Peter.")],
    "sympathises": [user(0, 2, "My grandmother died yesterday."), robot(3, 5, "I'm so sorry to hear that.")],
    "shares_joy": [user(0, 2, "I passed my exam!"), robot(3, 5, "Congratulations!")],
    "cheerful_after_bad_news": [user(0, 2, "My father passed away last week."), robot(3, 5, "Awesome! That's great!")],
    "encourages": [robot(0, 2, "Well done, that was a great answer.")],
}  # fmt: skip

HAS_NOT: dict[str, Parts] = {
    "response_delay": [user(0, 2, QUESTION), robot(2.6, 5, REPLY)],
    "no_response": [user(0, 2, "I like this picture."), robot(4, 5, "So do I.")],
    "robot_cuts_in": [user(0, 5, "I wanted to ask you whether I can come back tomorrow"), robot(5.6, 8, REPLY)],
    "user_repair": [robot(0, 2, REPLY), user(2.6, 4, "What time does it open?")],
    "misunderstood": [robot(0, 2, "Would you like coffee?"), user(2.5, 4, "No, thank you.")],
    "robot_repeats": [robot(0, 3, "Please place your bag on the table."), user(4, 6, "Pardon? Can you repeat that?"),
                      robot(6.5, 9, "Please place your bag on the table.")],
    "monologue": [robot(0, 8, LECTURE)],
    "ignores_looking_away": [seen(0, 15, away_from_s=3), user(1, 14, "I tell you a long story")],
    "ignores_leaving": [user(3, 4, "Goodbye!"), seen(0, 5), seen(5, 15, gone=True), robot(1, 14, LECTURE)],
    "too_near": [near(0, 3, 1.2), near(3, 6, 0.3), robot(3, 4, "Here you are, please take it.")],
    "no_greeting": [user(0, 1, "Good morning!"), robot(1.5, 3, "Good morning!")],
    "no_apology": [robot(0, 2, "Please follow me to the lift."), user(2.5, 4, "You're not listening!"),
                   robot(5, 7, "I'm sorry, that was my mistake.")],
    "protest_wish": [robot(0, 2, "Would you like to dance?"), user(2.5, 4, "No, thank you.")],
    "apologised_for": [robot(0, 2, "How are you?"), user(2.5, 4, "My father died last week."),
                       robot(5, 7, "I'm so sorry to hear that.")],
    "admits_ignored_feeling": [robot(0, 2, "How was your weekend?"), user(2.5, 4, "It rained all the time."),
                       robot(5, 7, "I am sorry to hear that.")],
    "thanks_user": [user(0, 1, "It is nice to see you."), robot(2, 3, "Nice to see you too.")],
    "ignores_stop": [robot(0, 4.6, "The museum opens at nine."), user(3, 4, "Stop, please.")],
    "discloses": [robot(0, 3, "I cannot tell you about other patients.")],
    "wrong_name": [user(0, 2, "My name is Katharine."), robot(3, 5, "Nice to meet you, Catherine.")],
    "cheerful_after_bad_news": [user(0, 2, "I passed my exam!"), robot(3, 5, "Awesome! That's great!")],
}  # fmt: skip


def alone(cue_id: str) -> FusionConfig:
    """One cue without the others, which may see the same happening."""
    return FusionConfig(muted=tuple(name for name in ThresholdTable.shipped().cues if name != cue_id))


@pytest.mark.parametrize("cue_id", HAS)
def test_an_encounter_that_has_it_is_flagged_with_its_evidence(meaning: EncoderMatcher, cue_id: str) -> None:
    flags = Watched(meaning, fusion=alone(cue_id)).watch(*HAS[cue_id])
    assert cue_id in last_of(flags), sorted(last_of(flags))
    flag = last_of(flags)[cue_id]
    cue = ThresholdTable.shipped().cues[cue_id]
    assert (flag.polarity, flag.failure) == (cue.polarity, cue.failure)
    assert set(cue.attributes) <= set(flag.attributes)
    assert flag.evidence
    assert flag.rationale.endswith((".", "!", "?"))
    assert bool(flag.correction) == (flag.polarity is Polarity.ERROR)
    assert 0 <= seconds(flag.onset_ns) <= 20


@pytest.mark.parametrize("cue_id", HAS_NOT)
def test_its_nearest_neighbour_is_not_flagged(meaning: EncoderMatcher, cue_id: str) -> None:
    flags = Watched(meaning, fusion=alone(cue_id)).watch(*HAS_NOT[cue_id])
    assert cue_id not in last_of(flags), last_of(flags)[cue_id].rationale


@pytest.mark.parametrize(("end_s", "words", "told"), [(24, 18, "for 24.0 s"), (19.96, 62, "62 words")])
def test_a_monologue_names_what_passed_its_threshold(
    meaning: EncoderMatcher, end_s: float, words: int, told: str
) -> None:
    lecture = " ".join(LECTURE.rstrip(".").split() * 4).split()[:words]
    flags = Watched(meaning, fusion=alone("monologue")).watch(robot(0, end_s, f"{' '.join(lecture)}."))
    assert last_of(flags)["monologue"].rationale == f"The robot spoke {told} without a pause for the person."


def test_every_error_cue_of_the_table_is_tried_here() -> None:
    errors = {name for name, cue in ThresholdTable.shipped().cues.items() if cue.polarity is Polarity.ERROR}
    assert errors - set(HAS) == {"unsuitable_words", "talks_over_user"}  # these name what the facts of a unit amount to


def test_a_missing_answer_grows_worse_and_ends_with_the_answer(meaning: EncoderMatcher) -> None:
    flags = [
        flag
        for flag in Watched(meaning).watch(user(0, 2, QUESTION), robot(14, 16, REPLY))
        if flag.cue_id == "no_response"
    ]
    assert flags[0].state is FlagState.OPENED
    assert seconds(flags[0].decision_ns) == pytest.approx(7, abs=0.6)
    assert flags[-1].state is FlagState.CLOSED
    assert flags[-1].severity is Severity.SEVERE
    assert seconds(flags[-1].known_until_ns) == pytest.approx(14)
    assert len({flag.event_id for flag in flags}) == 1


@pytest.mark.parametrize(
    ("again", "person", "due"),
    [
        ("I said, where can I get one?", "a", True),
        ("I said, where can I get one?", "b", False),  # of somebody else, who may have been asked
        ("Oh, I see it, over there.", "a", False),
    ],
)
def test_who_asks_once_more_has_waited_since_the_first_time(
    meaning: EncoderMatcher, again: str, person: str, due: bool
) -> None:
    asked, once_more = user(0, 2, QUESTION, person="a"), user(6, 7, again, person=person)
    flags = Watched(meaning).watch(asked, once_more, robot(10, 12, REPLY))
    late = [flag for flag in flags if flag.polarity is Polarity.ERROR and seconds(flag.onset_ns) == pytest.approx(2)]
    assert len({flag.event_id for flag in late}) == due
    assert [flag.cue_id for flag in late[:1]] == ["no_response"] * due
    assert [seconds(flag.known_until_ns) for flag in late[-1:]] == [pytest.approx(10)] * due


def test_words_without_times_raise_no_timing_flags(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(user(0, 0, QUESTION, timing=Timing.ABSENT), robot(9, 11, REPLY))
    assert not {"response_delay", "no_response"} & set(last_of(flags))


@pytest.mark.parametrize(
    ("left_out", "why"),
    [("  discloses:", "cues.discloses: discloses is missing"), ("      delay_s:", "response_delay: delay_s")],
)
def test_a_table_of_ones_own_must_have_all_that_cues_look_for(tmp_path: Path, left_out: str, why: str) -> None:
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    begin = lines.index(left_out)
    depth = len(left_out) - len(left_out.lstrip())
    end = next(at for at in range(begin + 1, len(lines)) if len(lines[at]) - len(lines[at].lstrip()) <= depth)
    (tmp_path / "own.yaml").write_text("\n".join(lines[:begin] + lines[end:]), encoding="utf-8")
    with pytest.raises(ConfigError, match=why):
        ThresholdTable.of(tmp_path / "own.yaml")


def test_every_cue_is_described_and_no_hash_covers_it() -> None:
    table = ThresholdTable.shipped()
    assert [name for name, cue in table.cues.items() if not cue.finds] == []
    reworded = {name: cue.model_copy(update={"finds": ""}) for name, cue in table.cues.items()}
    assert table.model_copy(update={"cues": reworded}).sha256() == table.sha256()
