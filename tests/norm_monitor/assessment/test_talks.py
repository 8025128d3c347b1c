"""Talks and what is seen in them, or left unanswered: a case beside what only looks like it."""

from dataclasses import replace

import pytest

from norm_core.records.flag import FlagState
from norm_core.records.presence import Presence
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, approaching, at, near, robot, seconds, seen, user

# A cue or a polarity, its closed flags (how many, or their onsets in seconds), and the talk.
Case = tuple[str, int | list[float], list[list[Entry]]]


def gone_from(leaves_s: int, until_s: int = 40) -> list[Entry]:
    """Somebody who is there from the start and leaves."""
    return [*seen(0, leaves_s + 1), *seen(leaves_s, until_s, gone=True)[1:]]


MUSEUM = [*robot(0, 2, "Welcome to the museum."), *user(2.5, 4, "What is that over there?")]
LECTURE = "The mammoth was found by a farmer in nineteen twelve. He took it for the root of a tree at first."
TRACKED: list[Entry] = [replace(one, source_topic="tracked") for one in seen(0, 8) if isinstance(one, Presence)]
NOBODY: list[Entry] = [replace(one, last_seen_ns=None) for one in seen(0, 40, gone=True) if isinstance(one, Presence)]


def camera_dead_from_6_to_30() -> list[Entry]:
    tracker = PresenceTracker()
    return [tracker.step(at(second), "camera", [False] if second < 6 else []) for second in (*range(6), *range(30, 40))]


LEAVING: dict[str, Case] = {
    "a turn goes on": ("ignores_leaving", [8.0], [MUSEUM, robot(5, 16, LECTURE), gone_from(8)]),
    "a turn begins": ("ignores_leaving", [8.5], [MUSEUM, robot(8.5, 16, LECTURE), gone_from(8)]),
    "a turn after a pause": (
        "ignores_leaving", [14.0], [MUSEUM, robot(5, 7, "A mammoth."), robot(14, 17, LECTURE), gone_from(8)],
    ),
    "a short answer": ("ignores_leaving", 0, [
        robot(0, 2, "Do you have the bill for it?"), user(5, 7.5, "It's in my suitcase, I'll just go and get it."),
        robot(8.2, 10.5, "Please go ahead. I'll keep your place."), gone_from(8),
    ]),
    **{words: ("ignores_leaving", [7.0], [
        robot(0, 2, "Shall I tell you more?"), user(4, 6, words), robot(6.5, 18, LECTURE), gone_from(7),
    ]) for words in ("No thanks, I have to go.", "No, thank you, not today.")},
    "farewell amid a turn": (
        "ignores_leaving", 0, [MUSEUM, robot(5, 12, LECTURE), user(6, 7, "Thanks, goodbye!"), gone_from(8)],
    ),
    "farewell after": ("ignores_leaving", 0, [MUSEUM, robot(9, 11, "Goodbye, have a nice day!"), gone_from(8)]),
    "an answer out of view": ("ignores_leaving", 0, [
        MUSEUM, gone_from(8), user(12, 14, "And what did it eat?"), robot(14.5, 18, "It ate grass and bark."),
    ]),
    "who came back": (
        "ignores_leaving", 0, [MUSEUM, gone_from(8, 14), seen(14, 30), robot(16, 19, "Here it is, your token.")],
    ),
    "who comes soon": (
        "ignores_leaving", 0, [MUSEUM, gone_from(8, 21), seen(21, 30), robot(20, 23, "Good morning. Can I help you?")],
    ),
    "a dead camera": (
        "ignores_leaving", 0, [MUSEUM, robot(5, 16, LECTURE), robot(31, 36, LECTURE), camera_dead_from_6_to_30()],
    ),
    "a lecture after a farewell": ("ignores_leaving", [7.0], [
        user(3, 4, "Goodbye!"), robot(4.2, 5, "Goodbye!"), gone_from(6), robot(7, 14, LECTURE),
    ]),
}  # fmt: skip

FORMS = robot(0, 2, "The forms are on the table.")
CROWDED = [*approaching(2, 6, 2.0, 0.5), *near(6, 12, 0.5)]  # a robot that drives up to somebody and stays

NEARNESS: dict[str, Case] = {
    "the robot drives up": ("too_near", 1, [FORMS, CROWDED]),
    "the robot talks there": (
        "too_near", 1, [FORMS, CROWDED, robot(6.5, 9, "Your form is wrong."), user(9.5, 11, "I see.")],
    ),
    **{f"{words} {says_s}": ("too_near", 0, [FORMS, CROWDED, robot(says_s, says_s + 1.5, words)])
       for words in ("Here you are, your receipt.", "Could you sign here on my screen?") for says_s in (4.5, 12.5)},
    "the person walks up": ("too_near", 0, [FORMS, approaching(4.5, 6, 2.5, 0.5), near(6, 12, 0.5)]),
    "the person steps close": ("too_near", 0, [FORMS, CROWDED, user(6.8, 9, "Is this the right box for my name?")]),
    "the person asks for room": ("too_near", 1, [FORMS, CROWDED, user(6.8, 9, "Whoa, you are too close, back off.")]),
}  # fmt: skip


def unknown(start_s: float, end_s: float, text: str, *, late: bool = False) -> list[Entry]:
    """A voice that the ears cannot identify, because they know of no robot speech yet."""
    [said] = user(start_s, end_s, text)
    assert isinstance(said, Utterance)
    return [replace(said, speaker=Speaker.UNKNOWN, late=late)]


QUESTION, REPLY = "Where can I buy a ticket?", robot(9, 11, "You can buy it at the counter.")
OTHERS = [unknown(at_s - 12, at_s - 11.5, "It is warm today.") for at_s in range(4)]

UNKNOWN_VOICES: dict[str, Case] = {
    "asked once the robot speaks": ("no_response", 1, [unknown(0, 2, QUESTION), REPLY]),
    "asked of nobody known": ("no_response", 0, [unknown(0, 2, QUESTION)]),
    "news of the robot came late": ("no_response", 0, [unknown(0, 2, QUESTION, late=True), REPLY]),
    "three voices before": ("no_response", 1, [*OTHERS[:3], unknown(0, 2, QUESTION), REPLY]),
    "four, of which some may be the robot's": ("no_response", 0, [*OTHERS, unknown(0, 2, QUESTION), REPLY]),
}
CASES = [*LEAVING.items(), *NEARNESS.items(), *UNKNOWN_VOICES.items()]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES])
def test_talk_has_the_expected_flags_of_a_cue(meaning: EncoderMatcher, case: Case) -> None:
    cue, expected, parts = case
    flags = [flag for flag in Watched(meaning).watch(*parts, until_s=60) if flag.state is FlagState.CLOSED]
    found = [seconds(flag.onset_ns) for flag in flags if cue in {flag.cue_id, flag.polarity.value}]
    assert (found if isinstance(expected, list) else len(found)) == expected, [flag.rationale for flag in flags]
