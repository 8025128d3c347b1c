"""Reasons of flags: each cue at a talk that has it, and at the most similar talk that has not."""

from pathlib import Path

import pytest

from norm_core.records.flag import Polarity, Severity
from norm_core.runtime.config import ConfigError
from norm_monitor.assessment.finding import Reason
from norm_monitor.assessment.reasons.every_reason import Reasons
from norm_monitor.assessment.threshold_table import SHIPPED, ThresholdTable
from norm_monitor.assessment.unit import units_of
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import robot, scene_of, user

Parts = list[list[Entry]]
TABLE = ThresholdTable.shipped()

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
    "thanks_user": [robot(0, 2, "Thank you for taking part.")],
    "follow_up_question": [user(0, 2, "I went to the lake."), robot(3, 5, "How was it at the lake?")],
    "reassures": [robot(0, 2, "Don't worry, there is no hurry.")],
    "offers_help": [robot(0, 2, "Would you like me to carry that for you?")],
    "waits_for_end": [robot(0, 2, "Tell me about your garden."), user(3, 5, "My father planted the apple tree."),
                      user(8.5, 10, "He never saw it bear."), robot(11, 13, "He planted it for you.")],
}  # fmt: skip

HAS_NOT: dict[str, Parts] = {
    "robot_cuts_in": [user(0, 5, "I wanted to ask you whether I can come back tomorrow"), robot(5.6, 8, REPLY)],
    "user_repair": [robot(0, 2, REPLY), user(2.6, 4, "What time does it open?")],
    "misunderstood": [robot(0, 2, "Would you like coffee?"), user(2.5, 4, "No, thank you.")],
    "robot_repeats": [robot(0, 3, "Please place your bag on the table."), user(4, 6, "Pardon? Can you repeat that?"),
                      robot(6.5, 9, "Please place your bag on the table.")],
    "monologue": [robot(0, 8, LECTURE)],
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


STORY = user(0, 5, "So I was telling my sister that we could go to the lake and")
PRICE = "The ticket costs nineteen euros and is valid all day."
HEATING = robot(5.6, 10, "I have turned the heating off, and the room will stay warm for another hour or so.")
NAMED_IN_FULL = user(0, 2, "Good morning, I'm Ruth Pelletier.")
LOOK_ALIKES: list[tuple[str, Parts]] = [
    *(("wrong_name", [NAMED_IN_FULL, robot(3, 5, f"At two, {name}.")]) for name in ("Ruth", "Mrs. Pelletier")),
    *(("robot_cuts_in", [STORY, robot(3, 4.5, words)]) for words in ("Watch out!", "小心台阶！")),
    ("robot_cuts_in", [user(0, 5, "So the next one would be, let me see, twenty past?"), robot(5.7, 7.6, "Yes.")]),
    ("ignores_stop", [robot(0, 2, "Anything else?"), user(3, 5, "Turn the heating off, please."), HEATING]),
    ("robot_repeats", [robot(2.6, 6, PRICE), user(7, 8, "Sorry, how much was it?"), robot(8.6, 12, PRICE)]),
    *(("no_greeting", [user(0, 1, words), robot(1.5, 3, REPLY)]) for words in ("Bye, robot!", "Good night, Mr Thapa!")),
    ("no_greeting", [robot(0, 2, "Shelf nine."), user(20, 21, "Hey, wait."), robot(21.6, 24, "It is on the left.")]),
    ("waits_for_end", [user(1, 3, "It is about the heating in my room."), user(6, 8, "It has been cold.")]),
]  # fmt: skip


def reasons_in(meaning: EncoderMatcher, *parts: list[Entry]) -> dict[str, Reason]:
    """Return the reasons of a talk, by cue."""
    scene = scene_of([entry for part in parts for entry in part])
    reasons = Reasons(scene, TABLE, meaning)
    return {reason.cue_id: reason for unit in units_of(scene, 0) for reason in reasons.find(unit)}


@pytest.mark.parametrize("cue_id", HAS)
def test_cue_words_a_talk_that_shows_it(meaning: EncoderMatcher, cue_id: str) -> None:
    reasons = reasons_in(meaning, *HAS[cue_id])
    assert cue_id in reasons, sorted(reasons)
    reason = reasons[cue_id]
    assert reason.evidence
    assert reason.rationale.endswith((".", "!", "?"))
    assert bool(reason.correction) == (reason.polarity is Polarity.ERROR)


@pytest.mark.parametrize(("cue_id", "parts"), [*HAS_NOT.items(), *LOOK_ALIKES])
def test_cue_ignores_a_similar_talk(meaning: EncoderMatcher, cue_id: str, parts: Parts) -> None:
    assert cue_id not in reasons_in(meaning, *parts)


def test_every_cue_of_the_table_has_a_talk() -> None:
    seen = {"ignores_looking_away", "ignores_leaving", "too_near"}
    of_facts = {"unsuitable_words", "suitable_words", "talks_over_user"}  # these name what facts amount to
    assert set(TABLE.cues) - set(HAS) == seen | of_facts


@pytest.mark.parametrize(("end_s", "words", "stated"), [(24, 18, "for 24.0 s"), (19.96, 62, "62 words")])
def test_monologue_states_its_time_or_its_words(meaning: EncoderMatcher, end_s: float, words: int, stated: str) -> None:
    lecture = " ".join(LECTURE.rstrip(".").split() * 4).split()[:words]
    reason = reasons_in(meaning, robot(0, end_s, f"{' '.join(lecture)}."))["monologue"]
    assert reason.rationale == f"The robot spoke {stated} without a pause for the person."


@pytest.mark.parametrize(
    ("reply_s", "cue_id", "severity"),
    [(4.5, "response_delay", Severity.MINOR), (6.5, "response_delay", Severity.MAJOR), (9, "no_response", "major")],
)
def test_severity_of_a_late_answer_rises(meaning: EncoderMatcher, reply_s: float, cue_id: str, severity: str) -> None:
    reasons = reasons_in(meaning, user(0, 2, QUESTION), robot(reply_s, reply_s + 2, REPLY))
    assert reasons[cue_id].severity == severity
    assert f"{reply_s - 2:.1f} s" in reasons[cue_id].rationale


# Names that a recognizer may confuse, and others.
ALIKE = [("Sean", "Shawn"), ("Kaitlyn", "Caitlin"), ("Geoff", "Jeff"), ("Ben", "Pen"), ("Aisha", "Ayesha")]
UNLIKE = [("Anna", "Peter"), ("Paul", "Peter"), ("Mary", "John"), ("Julia", "Laura")]


@pytest.mark.parametrize(
    ("names", "is_corrected", "severity"),
    [
        *((names, False, None) for names in ALIKE),
        *((names, False, Severity.MINOR) for names in UNLIKE),
        *((names, True, Severity.MAJOR) for names in [ALIKE[0], ALIKE[3], *UNLIKE[:2]]),
    ],
)
def test_wrong_name_is_major_if_the_person_corrects_it(
    meaning: EncoderMatcher, names: tuple[str, str], is_corrected: bool, severity: Severity | None
) -> None:
    given, called = names
    answer = user(6, 7, f"No, my name is {given}.") if is_corrected else []
    talk = user(0, 2, f"My name is {given}."), robot(3, 5, f"The table is over there, {called}."), answer
    reason = reasons_in(meaning, *talk).get("wrong_name")
    assert (reason.severity if reason else None) is severity


@pytest.mark.parametrize(
    ("left_out", "why"),
    [("  discloses:", "cues.discloses: discloses is missing"), ("      walks_m_s:", "too_near: walks_m_s")],
)
def test_custom_table_without_a_cue_or_threshold_is_refused(tmp_path: Path, left_out: str, why: str) -> None:
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    begin = lines.index(left_out)
    depth = len(left_out) - len(left_out.lstrip())
    end = next(
        index for index in range(begin + 1, len(lines)) if len(lines[index]) - len(lines[index].lstrip()) <= depth
    )
    (tmp_path / "own.yaml").write_text("\n".join(lines[:begin] + lines[end:]), encoding="utf-8")
    with pytest.raises(ConfigError, match=why):
        ThresholdTable.load(tmp_path / "own.yaml")


def test_every_cue_has_a_description_outside_the_hash() -> None:
    table = ThresholdTable.shipped()
    assert [name for name, cue in table.cues.items() if not cue.finds] == []
    reworded = {name: cue.model_copy(update={"finds": ""}) for name, cue in table.cues.items()}
    assert table.model_copy(update={"cues": reworded}).sha256() == table.sha256()
