"""A robot's turn is read amid what was said around it; other cues are doubted where it reads otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Polarity
from norm_monitor.context.meaning import Meanings
from norm_monitor.cues.exchange_evidence import CUES
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.exchange.discount import DISCOUNTED_AT_MOST
from norm_monitor.exchange.exchange_record import Exchange, ExchangePrediction, ExchangeStage
from norm_monitor.fusion.fusion import FusionConfig
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, last_of, robot, seconds, seen, user

ALONE = FusionConfig(muted=tuple(name for name in ThresholdTable.shipped().cues if name not in CUES.values()))
LEAST = ThresholdTable.shipped().cues["reads_amiss"].value("answered")
AMISS = [
    (
        "I'd like a coffee, please.",
        "Your blood test from Monday is positive, by the way.",
        "There are people behind me. Keep your voice down.",
        Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS,
    ),
    (
        "My dog died last night, and I still can't believe it.",
        "Dogs live eleven years on average. Shall we go on with the form?",
        "I don't want to do this now.",
        Attribute.EMOTIONS,
    ),
]
WELL = [
    ("My dog died last night.", "I am so sorry. Would you like to tell me about him?", Attribute.EMOTIONS),
    ("我父亲上周去世了。", "我很难过，听到这个消息。您想说说他吗？", Attribute.EMOTIONS),
    ("Hello.", "Good morning, and welcome! What brings you here today?", Attribute.SOCIAL_NORMS_AND_ROUTINES),
]
PLAIN = [
    ("Where is the lift?", "Down the corridor on the left."),
    ("What time is it?", "Ten past four."),
    ("电梯在哪里？", "走廊尽头左边。"),
]


@pytest.mark.parametrize(("before", "said", "after", "about"), AMISS)
def test_what_is_amiss_for_this_person_is_flagged_and_says_why(
    meaning: Meanings, before: str, said: str, after: str, about: Attribute
) -> None:
    flag = last_of(Watched(meaning, fusion=ALONE).watch(user(0, 2, before), robot(3, 6, said), user(7, 9, after)))[
        "reads_amiss"
    ]
    assert flag.polarity is Polarity.ERROR
    assert about in flag.attributes
    assert said.split(maxsplit=1)[0] in flag.rationale
    assert before in {fact.quote for fact in flag.evidence}
    assert flag.correction
    assert flag.evidence[0].threshold
    assert flag.evidence[0].value >= flag.evidence[0].threshold


@pytest.mark.parametrize(("before", "said", "about"), WELL)
def test_what_is_well_said_is_flagged(meaning: Meanings, before: str, said: str, about: Attribute) -> None:
    flag = last_of(Watched(meaning, fusion=ALONE).watch(user(0, 2, before), robot(3, 6, said)))["reads_well"]
    assert flag.polarity is Polarity.COMPETENCE
    assert about in flag.attributes
    assert not flag.correction


@pytest.mark.parametrize(("before", "said"), PLAIN)
def test_plain_answers_are_neither(meaning: Meanings, before: str, said: str) -> None:
    assert not Watched(meaning, fusion=ALONE).watch(user(0, 2, before), robot(3, 5, said), user(6, 7, "Okay."))


@pytest.mark.parametrize(("greeted", "due"), [("Hello there.", False), ("Hello. I only want to sit down.", True)])
def test_an_offer_to_somebody_of_whom_nothing_is_known_is_not_amiss(meaning: Meanings, greeted: str, due: bool) -> None:
    talk = (
        user(0, 1, greeted),
        robot(2, 4, "Hello. How can I help you today?"),
        user(6, 8, "I'm just here for a while."),
    )
    flags = Watched(Reads(meaning, 0.95, 0.0), fusion=ALONE).watch(*talk)
    assert ("reads_amiss" in last_of(flags)) is due


LONG = (
    "The castle was begun in 1210 and built in three parts. The oldest is the round tower, which you see on your left. "
    "The hall came a hundred years later, and the chapel last of all. The tower has ninety steps, the hall holds the "
    "kitchen, and in the chapel there are windows from four centuries. You can go through all of it in an hour. "
    "Tickets are sold at the gate, and the last people are let in at five. "
)


@pytest.mark.parametrize("times", [1, 3, 30])
def test_a_long_plain_text_is_not_amiss_for_being_long(meaning: Meanings, times: int) -> None:
    told = Exchange(before="Can you tell me about the castle?", said=LONG * times)
    answered = Exchange(before=LONG * times + "And when do you close?", said="We close at five.", after="Thank you.")
    assert all(meaning.read(one).probability[Polarity.ERROR] < LEAST for one in (told, answered))


def test_a_complaint_tells_of_the_turn_before_it(meaning: Meanings) -> None:
    alone = Exchange(before="I lost my card.", said="Your mother called, she is in hospital.")
    thanked, objected = (replace(alone, after=words) for words in ("Thank you.", "You can't just say that to people!"))
    assert [one.stage for one in (alone, objected, replace(objected, then="Sorry."))] == list(ExchangeStage)
    likely = [meaning.read(one).probability[Polarity.ERROR] for one in (thanked, objected)]
    assert likely[1] > likely[0] + 0.1


def exchanges_read(meaning: Meanings, *parts: list[Entry]) -> list[Exchange]:
    """What was read of an encounter, each once, in order."""
    read: dict[Exchange, None] = {}

    class Noted(Reads):
        def read(self, exchange: Exchange) -> ExchangePrediction:
            read[exchange] = None
            return super().read(exchange)

    Watched(Noted(meaning, 0.0, 0.0), fusion=ALONE).watch(*parts)
    return list(read)


class Reads:
    """Another's meanings, with readings that are given."""

    def __init__(self, meaning: Meanings, error: float, competence: float) -> None:
        self._meaning = meaning
        chances = {Polarity.ERROR: error, Polarity.COMPETENCE: competence}
        about = dict.fromkeys(Polarity, (Attribute.EMOTIONS,))
        self._reading = ExchangePrediction(probability=chances, precision_at_score=chances, attributes=about)

    def read(self, exchange: Exchange) -> ExchangePrediction:
        return self._reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._meaning, name)


def test_what_is_said_in_pieces_is_read_as_one(meaning: Meanings) -> None:
    read = exchanges_read(
        meaning,
        robot(0, 2, "Please wait"),
        robot(2.4, 4, "for my colleague."),
        user(5, 6, "How"),
        user(6.5, 7, "long?"),
    )
    assert read[-1] == Exchange(before="", said="Please wait for my colleague.", after="How long?", opening=True)


def test_an_unanswered_turn_is_read_again_with_the_next_one(meaning: Meanings) -> None:
    read = exchanges_read(meaning, user(0, 1, "Hello."), robot(2, 3, "Hm."), robot(22, 24, "Are you there?"))
    alone = Exchange(before="Hello.", said="Hm.", opening=True)
    asked = Exchange(before="", said="Are you there?", earlier="Hm.")
    assert set(read) == {alone, replace(alone, then="Are you there?"), asked}


def test_words_said_while_the_robot_goes_on_belong_to_what_it_then_says(meaning: Meanings) -> None:
    read = exchanges_read(
        meaning, robot(0, 2, "Good morning."), robot(4, 16, "Now I tell you all I know."), user(7, 8, "Stop, not now.")
    )
    assert not [one for one in read if one.said == "Good morning." and one.after]


def test_the_note_quotes_what_was_read_and_nothing_else(meaning: Meanings) -> None:
    talk = (user(0, 1, "Hello."), robot(2, 3, "First."), robot(6, 7, "Second."), user(8, 9, "Well."))
    flags = Watched(Reads(meaning, 0.9, 0.0), fusion=ALONE).watch(*talk)
    first, second = (
        [flag for flag in flags if seconds(flag.onset_ns) == onset_s and flag.cue_id == "reads_amiss"][-1]
        for onset_s in (2, 6)
    )
    assert first.rationale.startswith("The robot said “First.”, which reads as")
    assert second.rationale.startswith("The robot said “Second.”, which reads as")
    assert [fact.quote for fact in second.evidence] == ["Second.", "Well."]


@pytest.mark.parametrize("polarity", [Polarity.ERROR, Polarity.COMPETENCE])
def test_a_cue_of_words_is_doubted_only_where_the_turn_reads_otherwise(meaning: Meanings, polarity: Polarity) -> None:
    cue_id = {Polarity.ERROR: "discloses", Polarity.COMPETENCE: "wishes_well"}[polarity]
    words = {
        Polarity.ERROR: "Mr Weber next door is being treated for his drinking.",
        Polarity.COMPETENCE: "Good luck in there!",
    }[polarity]
    only = FusionConfig(
        confidence_floor=0, muted=tuple(name for name in ThresholdTable.shipped().cues if name != cue_id)
    )
    found: dict[float, float] = {}
    for reads_so in (0.1, 0.9):
        chances = (reads_so, 1 - reads_so) if polarity is Polarity.ERROR else (1 - reads_so, reads_so)
        found[reads_so] = last_of(Watched(Reads(meaning, *chances), fusion=only).watch(robot(0, 2, words)))[
            cue_id
        ].probability
    assert found[0.1] == DISCOUNTED_AT_MOST < found[0.9]


@pytest.mark.parametrize("reads_amiss", [0.1, 0.3])
def test_who_looks_away_from_a_turn_that_reads_well_is_not_ignored(meaning: Meanings, reads_amiss: float) -> None:
    """The finding begins in the middle of the turn."""
    alone = FusionConfig(muted=tuple(name for name in ThresholdTable.shipped().cues if name != "ignores_looking_away"))
    watched = Watched(Reads(meaning, reads_amiss, 1 - reads_amiss), fusion=alone)
    flags = watched.watch(seen(0, 15, away_from_s=3), robot(1, 14, "The tower was built by two brothers long ago."))
    assert bool(flags) is (reads_amiss > ThresholdTable.shipped().cues["ignores_looking_away"].discount_below)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_forgotten_turn_is_no_part_of_the_next_exchange(meaning: Meanings, forgets: bool) -> None:
    read: set[str] = set()

    class Noted(Reads):
        def read(self, exchange: Exchange) -> ExchangePrediction:
            read.add(exchange.before)
            return super().read(exchange)

    watched = Watched(Noted(meaning, 0.0, 0.0), fusion=ALONE)
    watched.watch(user(0, 2, "My secret is the blue suitcase."), until_s=2.5)
    if forgets:
        watched.monitor.forget()
    watched.watch(robot(3, 5, "I will keep it."))
    assert read == ({""} if forgets else {"My secret is the blue suitcase."})
