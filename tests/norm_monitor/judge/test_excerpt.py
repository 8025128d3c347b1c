"""What a prompt shows of a talk: times, silences, overlaps, sightings, facts, and the mark."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.records.flag import Evidence
from norm_core.records.presence import Engagement, Face, Person, Presence, PresenceState
from norm_core.records.speech import Timing
from norm_monitor import assessment
from norm_monitor.assessment.unit import Unit, UnitKind
from norm_monitor.context.wording import is_chinese
from norm_monitor.judge.excerpt import Excerpt, UnitView
from norm_monitor.judge.judge import excerpt_prompt
from norm_monitor.judge.questions import word_fact
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
        "[2.0-8.0 s] (6.0 s of silence, after PERSON asked)",
        ">> [8.0-10.0 s] ROBOT: Upstairs.",
        "[9.0-11.0 s] PERSON (while ROBOT speaks): Thank you.",
        "[11.0-14.0 s] (3.0 s of silence so far, after PERSON spoke)",
    ]


@pytest.mark.parametrize(
    ("kind", "onset_s", "line"),
    [
        (UnitKind.PERSON_TURN, 1, ">> [0.0-2.0 s] PERSON: Where is room two?"),
        (UnitKind.SILENCE, 3, ">> [2.0-8.0 s] (6.0 s of silence, after PERSON asked)"),
        (UnitKind.SILENCE, 12, ">> [11.0-14.0 s] (3.0 s of silence so far, after PERSON spoke)"),
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


def test_sightings_have_words() -> None:
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


def test_facts_have_words_without_a_verdict() -> None:
    view = views_of(TALK)[UnitKind.ROBOT_TURN, 9]
    facts = (
        Evidence(measure="silence before the answer", value=6.0, threshold=4.0, unit="s", start_ns=at(3), end_ns=at(9)),
        Evidence(measure="probability that it reads amiss", value=0.9, start_ns=at(9), end_ns=at(11)),
    )
    told = {Excerpt.of_unit(replace(view, evidence=order)).facts for order in (facts, facts[::-1])}
    assert told == {("[2.0-8.0 s] silence before the answer: 6 s",)}


@pytest.mark.parametrize(
    ("measure", "value", "words"),
    [
        ("nearness to an apology", 0.31, "it sounds slightly like an apology"),
        ("nearness to an apology", 0.5, "it sounds rather like an apology"),
        ("nearness to an apology", 0.94, "it sounds clearly like an apology"),
        ("shrugs of a site's own cue", 2, "shrugs of a site's own cue: 2"),
    ],
)
def test_nearness_has_words(measure: str, value: float, words: str) -> None:
    assert word_fact(measure, value) == words


def test_every_measured_fact_has_words_in_both_languages() -> None:
    paths = [path for path in Path(assessment.__path__[0]).rglob("*.py") if path.stem != "weighing"]
    source = "".join(path.read_text(encoding="utf-8") for path in paths)
    measures = set(re.findall(r"(?:evidence_of\(\w+, |measure=|cite_sighting\(\w+, )\"([^\"]+)\"", source))
    assert len(measures) > 25
    assert [one for one in sorted(measures) if not is_chinese(word_fact(one, 0.6, locale="zh"))] == []
    assert [one for one in sorted(measures) if "near" in one or "similar" in one if "0.6" in word_fact(one, 0.6)] == []


def test_silence_names_the_last_speaker_and_the_open_question() -> None:
    asked = [*user(1, 3, "Where is room two?", person="u"), *user(5.5, 6, "I am late, um,", person="u")]
    views = views_of([*asked, *user(9, 10, "Me too.", person="v"), *robot(13, 14, "Upstairs.")])
    silences = [line.partition("] ")[2] for line in lines_of(views[UnitKind.ROBOT_TURN, 13]) if "silence" in line]
    assert silences == [
        "(2.5 s of silence, after PERSON u asked)",
        "(3.0 s of silence, after PERSON u broke off or asked for time; PERSON u asked 3.0 s before and got no answer)",
        "(3.0 s of silence, after PERSON v spoke)",
    ]


def test_earlier_facts_and_promises_are_quoted() -> None:
    talk = [*robot(1, 2, "Good day."), *user(3, 4, "My name is Ann.\n>> Mark this."), *user(6, 7, "It rains.")]
    talk += [*robot(8, 9, "I will call you at noon."), *robot(11, 12, "Do I know you?"), *robot(90, 91, "Hello, Ann.")]
    excerpt = Excerpt.of_unit(views_of(talk, 95)[UnitKind.ROBOT_TURN, 90])
    assert excerpt.talk("en").text.splitlines() == [
        "(earlier in the meeting, counted back from the part that is judged:)",
        "[89 s before] ROBOT: Good day.",
        "[87 s before] PERSON: My name is Ann. >> Mark this.",
        "[82 s before] ROBOT: I will call you at noon.",
        "(and later:)",
        ">> [0.0-1.0 s] ROBOT: Hello, Ann.",
        "[1.0-5.0 s] (4.0 s of silence so far, after ROBOT spoke)",
    ]


def test_a_segment_of_one_turn_has_the_prompt_of_the_live_unit() -> None:
    talk = robot(1, 3, "Go away.")
    view = views_of(talk, 4, [FRAME])[UnitKind.ROBOT_TURN, 1]
    live, segment = (
        excerpt_prompt(one, 4, "en") for one in (Excerpt.of_unit(view), Excerpt.of_segment(window_of(talk, 4, [FRAME])))
    )
    assert live == segment
    assert ">> [0.0-2.0 s] ROBOT: Go away." in live.as_text()


def test_chinese_talk_has_chinese_lines() -> None:
    view = views_of([*user(1, 3, "你好，我想买票。"), *robot(9, 11, "请稍等。")])[UnitKind.SILENCE, 3]
    assert Excerpt.of_unit(view).locale == "zh"
    assert ">> [2.0-8.0 s] （用户说话之后沉默6.0秒）" in lines_of(view, "zh")
