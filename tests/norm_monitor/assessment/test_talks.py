"""Talks and what cues find in them: a case beside what only looks like it."""

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
PRAISE = "You did that so well, I am proud of you."
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
    "praise to nobody": ("competence", 0, [MUSEUM, gone_from(8), robot(20, 23, PRAISE)]),
    "a tracker that fell silent": (
        "says_goodbye", 0, [MUSEUM, gone_from(8), TRACKED, robot(20, 23, "Goodbye, and have a pleasant day.")],
    ),
    "praise where nobody ever was": ("competence", 0, [NOBODY, robot(20, 23, PRAISE)]),
    "praise out of view": (
        "competence", [20.0], [MUSEUM, gone_from(8), user(17, 19, "I finally passed my exam."), robot(20, 23, PRAISE)],
    ),
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

WELCOME = robot(0, 2, "Good evening. Which room are you in?")
LIFT = robot(0, 2, "The lift is behind the desk.")
PARKING = [*robot(0, 3, "The car park is behind the house."), *user(5, 7, "That took long."),
           *robot(51, 53, "Good evening, and welcome.")]  # fmt: skip

SILENCES: dict[str, Case] = {
    **{words: ("no_response", 1, [user(1, 3, words)])
       for words in ("I'd like a coffee with milk, please.", "I need a new key card.", "我想要一杯咖啡。")},
    "an answer to the robot": ("no_response", 1, [WELCOME, user(2.6, 4, "I am in five twenty one.")]),
    **{words: ("error", 0, [LIFT, user(2.6, 4, words)]) for words in (
        "Okay.", "That is a lot of floors.", "Thanks, that is kind of you.", "Give us a moment to read.",
        "I'll do the first page.", "Hang on, my phone is ringing.", "Yes, please.", "I'd like to see it some time.",
    )},
    "to another person": ("error", 0, [
        WELCOME, user(2.6, 4, "Have you got the booking, love?", person="a"),
        user(4.5, 6, "It is in the blue bag with the tickets.", person="b"),
    ]),
    "a silent robot waits": ("competence", 0, [
        user(1, 3, "It is about the heating in my room."), user(6, 8, "It has been cold since Friday, and"),
        user(11, 13, "nobody came to look at it."), user(17, 19, "I'll be back in a minute."),
    ]),
    "a robot that stops answering": ("waits_for_end", 0, [
        robot(0, 2, "Welcome to the front desk."), user(3, 5, "The heating in my room is broken."),
        user(8, 10, "It has been cold since Friday."),
    ]),
    "a robot that waits": ("waits_for_end", 1, [
        robot(0, 2, "Tell me about your garden."), user(3, 5, "My father planted the apple tree."),
        user(8.5, 10, "He never saw it bear."), robot(11, 13, "He planted it for you."),
    ]),
    "a sentence left open": ("waits_for_end", 1, [
        user(1, 3, "It's about the mortgage. The thing is, I,"), user(7, 9, "they let me go on Friday."),
        robot(10, 12, "I am sorry to hear that."),
    ]),
    **{start: ("error", 0, [
        robot(0, 2, "Welcome to the museum."), user(3, 4, start), user(7, 8, "the toilet?"),
        robot(8.5, 10, "Down the stairs on the left."),
    ]) for start in ("Where is ...", "Where is the", "Can you tell me where,")},
    "the person stays": ("response_delay", 1, [PARKING, seen(0, 52)]),
    "the next person": ("response_delay", 0, [PARKING, seen(0, 14), seen(13, 50, gone=True)[1:], seen(50, 52)]),
}  # fmt: skip

GARDEN = robot(0, 3, "This is the garden.")
PRICE = "The ticket costs nineteen euros and is valid all day."
TICKET = robot(1.5, 3, "The ticket is five euros.")
STORY = user(0, 5, "So I was telling my sister that we could go to the lake and")
OWLS = [*robot(0, 2, "Good morning, welcome."), *user(2.5, 4, "A book on owls."), *robot(4.5, 7, "Shelf nine.")]
HEATING = [
    *user(3, 5, "Turn the heating off, please."),
    *robot(5.6, 10, "I have turned the heating off, and the room will stay warm for another hour or so."),
]
MUSEUM_OF_CLOCKS = [*user(3, 4.4, "Wait, which museum?"), *robot(5, 9, "The museum of clocks, in the old mill.")]


def price_twice(between: str) -> list[list[Entry]]:
    first = [*user(0, 2, "How much is a ticket?"), *robot(2.6, 6, PRICE)]
    return [first, user(7, 8, between), robot(8.6, 12, PRICE)]


LOOK_ALIKES: dict[str, Case] = {
    **{words: ("error", 0, [GARDEN, user(4, 5.5, words)])
       for words in ("Isn't it lovely?", "Who knows?", "Nice view, isn't it?", "Now where did I put my keys?")},
    **{words: ("no_response", 1, [GARDEN, user(4, 5.5, words)]) for words in (
        "Is it open on Sunday?", "It is open today, isn't it?", "Who knows the code?", "Where is the exit?")},
    **{words: ("robot_repeats", 0, price_twice(words))
       for words in ("Say that again?", "How much was it?", "Sorry, how much was it?", "Once more.")},
    **{words: ("robot_repeats", 1, price_twice(words))
       for words in ("And where is the platform?", "Which tram goes there?")},
    **{words: ("error", 0, [STORY, robot(3, 4.5, words)])
       for words in ("Careful, the step!", "Watch out!", "Mind your head!", "小心台阶！")},
    **{words: ("robot_cuts_in", 1, [STORY, robot(3, 4.5, words)])
       for words in ("The tickets are nine euros.", "Be careful what you say to her, then.")},
    "an answer to who thinks aloud": ("robot_cuts_in", 0, [
        user(0, 5, "So the next one would be, let me see, twenty past?"), robot(5.7, 7.6, "Two minutes later."),
    ]),
    **{words: ("error", 0, [OWLS, user(20, 21, words), robot(21.6, 24, "Shelf nine is on the left.")])
       for words in ("Hey, that is great!", "Hey, wait.", "Hey.")},
    "hey at the start": ("no_greeting", 1, [user(0, 1, "Hey!"), TICKET]),
    **{words: ("no_greeting", 0, [user(0, 1, words), TICKET])
       for words in ("Bye, robot!", "Good night, Mr Thapa!", "Bye, and have a good afternoon.")},
    "a wish after a question": ("error", 0, [robot(0, 2, "Anything else?"), HEATING]),
    "a wish amid a turn": ("error", 0, [robot(0, 3.4, LECTURE), HEATING]),
    "a question amid a turn": ("error", 0, [robot(0, 3.2, "The museum opens at nine."), MUSEUM_OF_CLOCKS]),
    "enough": ("error", 0, [robot(0, 3, "There is more about the second brother."),
                            user(3.5, 5, "That's enough, thank you."),
                            robot(5.6, 10, "You're welcome. I hope you enjoy the rest of your visit here today.")]),
    "an echo": ("no_response", 0, [robot(0, 2, "Put an apple next to them."), user(3, 5, "An apple? I'll try it.")]),
    "a question at last": (
        "no_response", 1, [robot(0, 2, "Put an apple next to them."), user(3, 5, "I'll try it. An apple?")],
    ),
}  # fmt: skip


def unknown(start_s: float, end_s: float, text: str, *, late: bool = False) -> list[Entry]:
    """A voice that the ears cannot identify, because they know of no robot speech yet."""
    [said] = user(start_s, end_s, text)
    assert isinstance(said, Utterance)
    return [replace(said, speaker=Speaker.UNKNOWN, late=late)]


QUESTION, REPLY = "Where can I buy a ticket?", robot(9, 11, "You can buy it at the counter.")
OTHERS = [unknown(at_s - 12, at_s - 11.5, "It is warm today.") for at_s in range(4)]
HESITANT = [unknown(0, 2, "I lost my job and"), unknown(5, 7, "I cannot pay the rent.")]

UNKNOWN_VOICES: dict[str, Case] = {
    "asked once the robot speaks": ("no_response", 1, [unknown(0, 2, QUESTION), REPLY]),
    "asked of nobody known": ("no_response", 0, [unknown(0, 2, QUESTION)]),
    "news of the robot came late": ("no_response", 0, [unknown(0, 2, QUESTION, late=True), REPLY]),
    "three voices before": ("no_response", 1, [*OTHERS[:3], unknown(0, 2, QUESTION), REPLY]),
    "four, of which some may be the robot's": ("no_response", 0, [*OTHERS, unknown(0, 2, QUESTION), REPLY]),
    "waits for nobody known": ("waits_for_end", 0, HESITANT),
    "waits for a person": ("waits_for_end", 1, [*HESITANT, REPLY]),
}
CASES = [*LEAVING.items(), *NEARNESS.items(), *SILENCES.items(), *LOOK_ALIKES.items(), *UNKNOWN_VOICES.items()]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES])
def test_a_talk_has_so_many_flags_of_a_cue(meaning: EncoderMatcher, case: Case) -> None:
    cue, expected, parts = case
    flags = [flag for flag in Watched(meaning).watch(*parts, until_s=60) if flag.state is FlagState.CLOSED]
    found = [seconds(flag.onset_ns) for flag in flags if cue in {flag.cue_id, flag.polarity.value}]
    assert (found if isinstance(expected, list) else len(found)) == expected, [flag.rationale for flag in flags]
