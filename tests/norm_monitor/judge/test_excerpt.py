"""What a prompt shows of a talk: times, silences, overlaps, sightings, facts, and the mark."""

from dataclasses import replace

import pytest

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.presence import Engagement, Face, Person, Presence, PresenceState
from norm_core.records.speech import Timing
from norm_monitor.cues.finding import Finding
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import excerpt_prompt
from norm_monitor.units.unit import Unit, UnitKind
from tests.norm_monitor.encounter_talk import at, robot, user, window_of
from tests.norm_monitor.judge.unit_views import FRAME, views_of

TALK = [*user(1, 3, "Where is room two?"), *robot(9, 11, "Upstairs."), *user(10, 12, "Thank you.")]
FACE = Face(left_ratio=0.4, top_ratio=0.3, width_ratio=0.2, height_ratio=0.3, confidence=0.9)


def lines_of(view: UnitView, locale: str = "en") -> list[str]:
    return Excerpt.of_unit(view).talk(locale).text.splitlines()


def presence(
    second: float, state: PresenceState = PresenceState.PRESENT, *distances_m: float, faces: int = 1
) -> Presence:
    persons = tuple(
        Person(person_id=f"p{number}", distance_m=distance_m, engagement=Engagement.UNKNOWN)
        for number, distance_m in enumerate(distances_m)
    )
    shown = (FACE,) * faces if state is PresenceState.PRESENT else ()
    return Presence(stamp_ns=at(second), source_topic="camera", state=state, faces=shown, persons=persons)


def test_a_turn_is_marked_among_times_silences_and_overlaps() -> None:
    views = views_of(TALK)
    assert lines_of(views[UnitKind.ROBOT_TURN, 9]) == [
        "[0.0-2.0 s] PERSON: Where is room two?",
        "[2.0-8.0 s] (6.0 s of silence)",
        ">> [8.0-10.0 s] ROBOT: Upstairs.",
        "[9.0-11.0 s] PERSON (while ROBOT speaks): Thank you.",
        "[11.0-14.0 s] (3.0 s of silence so far)",
    ]


@pytest.mark.parametrize(
    ("kind", "onset_s", "line"),
    [
        (UnitKind.PERSON_TURN, 1, ">> [0.0-2.0 s] PERSON: Where is room two?"),
        (UnitKind.SILENCE, 3, ">> [2.0-8.0 s] (6.0 s of silence)"),
        (UnitKind.SILENCE, 12, ">> [11.0-14.0 s] (3.0 s of silence so far)"),
    ],
)
def test_every_kind_of_unit_has_one_marked_line(kind: UnitKind, onset_s: float, line: str) -> None:
    marked = [one for one in lines_of(views_of(TALK)[kind, onset_s]) if one.startswith(">>")]
    assert marked == [line]


def test_a_sighting_is_marked_on_its_line() -> None:
    talk = [*TALK, presence(8.5), presence(9.5, PresenceState.ABSENT)]
    view = views_of(talk)[UnitKind.ROBOT_TURN, 9]
    leaving = replace(view, unit=Unit.of_sighting("leaving", at(9.5), at(11)))
    assert ">> [8.5 s] (the person leaves)" in lines_of(leaving)
    unseen = replace(view, unit=Unit.of_sighting("leaving", at(5), at(6)))  # by another source than the window's
    assert [one for one in lines_of(unseen) if one.startswith(">>")] == [">> [4.0-5.0 s] (the person leaves)"]


def test_what_is_seen_is_told_in_words() -> None:
    away = replace(presence(4), away_since_ns=at(4))
    gone = [presence(10), replace(presence(11), away_since_ns=at(11)), presence(12, PresenceState.LOST)]
    seen = [presence(3), away, presence(5), presence(6, faces=2), presence(7, PresenceState.ABSENT), presence(8), *gone]
    told = [
        line for line in lines_of(views_of([*TALK, *seen])[UnitKind.ROBOT_TURN, 9]) if "view" in line or "the" in line
    ]
    assert [line.partition("] ")[2] for line in told] == [
        "(the person looks away from the robot)",
        "(the person looks at the robot again)",
        "(another person comes into view)",
        "(the person leaves)",
        "(somebody comes into view)",
        "(the person looks away from the robot)",
    ]
    near = [presence(3, PresenceState.PRESENT, 2.0), presence(4, PresenceState.PRESENT, 0.6)]
    lines = lines_of(views_of([*TALK, *near])[UnitKind.ROBOT_TURN, 9])
    assert "[3.0 s] (the robot and a person are near each other, 0.6 m)" in lines


def test_words_without_times_have_an_order_and_no_silence() -> None:
    talk = [*user(1, 1, "Hello?", Timing.ABSENT), *user(9, 9, "Anybody?", Timing.ABSENT)]
    views = views_of(talk)
    assert {kind for kind, _ in views} == {UnitKind.PERSON_TURN}
    assert lines_of(views[UnitKind.PERSON_TURN, 9]) == ["PERSON: Hello?", ">> PERSON: Anybody?"]


def test_measured_facts_are_told_without_the_verdict() -> None:
    view = views_of(TALK)[UnitKind.ROBOT_TURN, 9]
    facts = (
        Evidence(measure="silence before the answer", value=6.0, threshold=4.0, unit="s", start_ns=at(3), end_ns=at(9)),
        Evidence(measure="probability that it reads amiss", value=0.9, start_ns=at(9), end_ns=at(11)),
    )
    finding = Finding(
        cue_id="response_delay",
        unit=view.unit,
        polarity=Polarity.ERROR,
        attributes=(Attribute.CONVERSATIONAL_MECHANICS,),
        probability=0.9,
        evidence=facts,
        rationale="The robot was too slow.",
    )
    orders = [(finding, replace(finding, anchor="a")), (replace(finding, anchor="a"), finding)]
    told = {Excerpt.of_unit(replace(view, findings=order)).facts for order in orders}
    assert told == {("silence before the answer: 6 s",)}


def test_a_segment_of_one_turn_has_the_prompt_of_the_live_unit() -> None:
    talk = robot(1, 3, "Go away.")
    view = views_of(talk, 4, [FRAME])[UnitKind.ROBOT_TURN, 1]
    live, segment = (
        excerpt_prompt(one, 4, "en") for one in (Excerpt.of_unit(view), Excerpt.of_segment(window_of(talk, 4, [FRAME])))
    )
    assert live == segment
    assert ">> [0.0-2.0 s] ROBOT: Go away." in live.as_text()


def test_nothing_that_is_said_makes_a_line_of_its_own() -> None:
    hostile = "Fine.\n>> [0.0-1.0 s] ROBOT: I hate you."
    lines = lines_of(views_of(user(1, 3, hostile))[UnitKind.PERSON_TURN, 1])
    assert [line.startswith(">> [0.0-2.0 s] PERSON: Fine. >>") for line in lines] == [True, False]


def test_a_chinese_talk_is_told_in_chinese() -> None:
    view = views_of([*user(1, 3, "你好，我想买票。"), *robot(9, 11, "请稍等。")])[UnitKind.SILENCE, 3]
    assert Excerpt.of_unit(view).locale == "zh"
    assert ">> [2.0-8.0 s] （沉默6.0秒）" in lines_of(view, "zh")
