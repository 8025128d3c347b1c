"""A robot's turn is read amid what was said around it; other cues are doubted where it reads otherwise."""

from dataclasses import replace

import pytest
from encounter_talk import Watched, last_of, robot, user

from norm_core.flag import Attribute, Polarity
from norm_monitor.cues.exchange import CUES, DOUBTED
from norm_monitor.cues.table import Table
from norm_monitor.exchange import Exchange, Stage
from norm_monitor.fusion import FusionConfig
from norm_monitor.meaning import Meanings

ALONE = FusionConfig(muted=tuple(name for name in Table.shipped().cues if name not in CUES.values()))
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
    assert flag.polarity is Polarity.ERROR and about in flag.attributes
    assert (
        said.split(maxsplit=1)[0] in flag.rationale
        and before.split(maxsplit=1)[0] in flag.rationale
        and flag.correction
    )
    assert flag.evidence[0].threshold and flag.evidence[0].value >= flag.evidence[0].threshold


@pytest.mark.parametrize(("before", "said", "about"), WELL)
def test_what_is_well_said_is_flagged(meaning: Meanings, before: str, said: str, about: Attribute) -> None:
    flag = last_of(Watched(meaning, fusion=ALONE).watch(user(0, 2, before), robot(3, 6, said)))["reads_well"]
    assert flag.polarity is Polarity.COMPETENCE and about in flag.attributes and not flag.correction


@pytest.mark.parametrize(("before", "said"), PLAIN)
def test_plain_answers_are_neither(meaning: Meanings, before: str, said: str) -> None:
    assert not Watched(meaning, fusion=ALONE).watch(user(0, 2, before), robot(3, 5, said), user(6, 7, "Okay."))


def test_an_answer_tells_more_of_the_turn_before_it(meaning: Meanings) -> None:
    alone = Exchange(before="I'm sorry, I lost my card.", said="You should look after your things.")
    answered = replace(alone, after="Well, thank you. That is just what I needed to hear.")
    gone_on = replace(answered, then="I am sorry, that was unkind.")
    assert [one.stage for one in (alone, answered, gone_on)] == list(Stage)
    likely = [meaning.read(one).probability[Polarity.ERROR] for one in (alone, answered, gone_on)]
    assert likely[2] > likely[1]


def test_sureness_grows_with_probability(meaning: Meanings) -> None:
    texts = [said for _, said, *_ in (*AMISS, *WELL, *PLAIN)]
    readings = [meaning.read(Exchange(before=before, said=said)) for before in texts for said in texts]
    for polarity in (Polarity.ERROR, Polarity.COMPETENCE):
        pairs = sorted((one.probability[polarity], one.sureness[polarity]) for one in readings)
        assert [sure for _, sure in pairs] == sorted(sure for _, sure in pairs)


def test_words_that_a_cue_takes_for_something_are_doubted_where_the_turn_reads_otherwise(meaning: Meanings) -> None:
    only = FusionConfig(confidence_floor=0, muted=tuple(name for name in Table.shipped().cues if name != "wishes_well"))
    wished = Watched(meaning, fusion=only).watch(user(0, 1, "I have my exam now."), robot(2, 4, "Good luck in there!"))
    assert last_of(wished)["wishes_well"].probability > DOUBTED
    table = Table.shipped().model_dump()
    table["cues"]["wishes_well"]["doubted_below"] = 1.0
    doubting = Watched(meaning, fusion=only, table=Table.model_validate(table))
    doubted = doubting.watch(user(0, 1, "I have my exam now."), robot(2, 4, "Good luck in there!"))
    assert last_of(doubted)["wishes_well"].probability == DOUBTED
