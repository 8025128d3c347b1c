"""Facts about people: which are stored for whom, and when they are forgotten."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from norm_core.records.presence import Engagement, Person, Presence, PresenceState
from norm_core.records.speech import Speaker
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.memory import MAX_PERSONS, USER, MemoryConfig, PersonMemory, person_of
from norm_monitor.context.turns import Turn
from norm_monitor.windows.cutter import Entry
from tests.norm_monitor.encounter_talk import Watched, at, last_of, robot, user

ALL = FusionConfig(min_probability=("error=0.01", "competence=0.01"))
FOREVER = 10**6


def turn(start_s: float, person: str = "", text: str = "I have a dog.", speaker: Speaker = Speaker.USER) -> Turn:
    return Turn(
        speaker=speaker,
        speaker_id=person,
        start_ns=at(start_s),
        end_ns=at(start_s + 1),
        text=text,
        turn_id=f"{person}{start_s}",
        spans=((at(start_s), at(start_s + 1)),),
    )


def seen(at_s: float, *persons: str, topic: str = "persons", engaged: str = "") -> Presence:
    return Presence(
        stamp_ns=at(at_s),
        source_topic=topic,
        state=PresenceState.PRESENT if persons else PresenceState.ABSENT,
        persons=tuple(
            Person(person_id=p, engagement=Engagement.ENGAGED if p == engaged else Engagement.UNKNOWN) for p in persons
        ),
    )


def list_remembered(memory: PersonMemory, person: str | None = None) -> list[str]:
    return [fact.turn.turn_id for fact in memory.facts(at(FOREVER), person)]


def replay_windows(
    memory: PersonMemory, turns: list[Turn], presences: list[Presence], cuts_s: list[int]
) -> PersonMemory:
    """Update a memory by windows that end at these times, each with all of the past again."""
    for before_s, end_s in zip([0, *cuts_s], cuts_s, strict=False):
        known_turns = [turn for turn in turns if turn.end_ns < at(end_s)]
        memory.update(known_turns, [p for p in presences if p.stamp_ns < at(end_s)], at(before_s - 15), at(end_s))
    return memory


TIMES = st.integers(0, 120)
TURNS = st.lists(st.tuples(TIMES, st.sampled_from(["", "a", "b"])), max_size=12, unique=True).map(
    lambda told: [turn(start_s, person) for start_s, person in sorted(told)]
)
PRESENCES = st.lists(st.tuples(TIMES, st.sets(st.sampled_from("ab"))), max_size=30, unique_by=lambda one: one[0]).map(
    lambda shown: [seen(at_s, *sorted(persons)) for at_s, persons in sorted(shown, key=lambda one: one[0])]
)
CUTS = st.sets(TIMES, max_size=20).map(lambda cuts: [*sorted(cuts), 130])
POLICIES = st.builds(
    MemoryConfig,
    remember_s=st.integers(0, 200),
    remember_after_leaving_s=st.integers(0, 60),
    max_facts=st.integers(1, 5),
)


@example([turn(0), turn(44)], [seen(44)], [2, 130], MemoryConfig(remember_s=85, remember_after_leaving_s=0))
@example([turn(0), turn(88)], [seen(88)], [50, 130], MemoryConfig(remember_s=42, remember_after_leaving_s=0))
@given(TURNS, PRESENCES, CUTS, POLICIES)
def test_memory_is_independent_of_the_windows(
    turns: list[Turn], presences: list[Presence], cuts_s: list[int], policy: MemoryConfig
) -> None:
    at_once = replay_windows(PersonMemory(policy), turns, presences, [130])
    assert list_remembered(replay_windows(PersonMemory(policy), turns, presences, cuts_s)) == list_remembered(at_once)


@given(TURNS, PRESENCES, CUTS, POLICIES)
def test_no_fact_outlives_the_policy(
    turns: list[Turn], presences: list[Presence], cuts_s: list[int], policy: MemoryConfig
) -> None:
    memory = replay_windows(PersonMemory(policy), turns, presences, cuts_s)
    for person in ("a", "b", USER):
        facts = memory.facts(at(FOREVER), person)
        assert len(facts) <= policy.max_facts
        assert all(at(130) - fact.turn.end_ns <= policy.remember_s * 1e9 for fact in facts)
        listed = [p for p in presences if p.source_topic == "persons"]
        last_ns = max((p.stamp_ns for p in listed if person in {one.person_id for one in p.persons}), default=None)
        if last_ns is None or not facts:
            continue
        since_ns = max(last_ns, *(fact.turn.end_ns for fact in facts))
        missing = [p.stamp_ns for p in listed if p.stamp_ns > since_ns]
        assert not missing or missing[-1] - missing[0] < max(policy.remember_after_leaving_s * 1e9, 1)


@given(TURNS, PRESENCES, CUTS, TIMES)
def test_forgotten_facts_never_come_back(
    turns: list[Turn], presences: list[Presence], cuts_s: list[int], forgotten_s: int
) -> None:
    memory = replay_windows(PersonMemory(MemoryConfig()), turns, presences, cuts_s)
    memory.forget(at(forgotten_s))
    assert list_remembered(memory) == []
    replay_windows(memory, turns, presences, [131, 140])
    assert all(fact.turn.start_ns > at(forgotten_s) for fact in memory.facts(at(FOREVER)))


def test_facts_of_a_crowd_are_bounded() -> None:
    memory = PersonMemory(MemoryConfig(max_facts=3))
    for minute in range(600):
        told = [turn(60 * minute + k / 10, f"p{(minute + k) % 200}") for k in range(10)]
        memory.update(told, [], at(60 * minute), at(60 * minute + 30))
        assert len({fact.person_id for fact in memory.facts(at(FOREVER))}) <= MAX_PERSONS
    assert len(list_remembered(memory)) <= 3 * MAX_PERSONS
    counted = {counter.name: counter.count for counter in memory.counters}
    assert counted["facts_over_limit"] + counted.get("facts_expired", 0) + len(list_remembered(memory)) == 6000


def test_only_facts_about_the_speaker_are_stored() -> None:
    memory = PersonMemory(MemoryConfig())
    told = [
        turn(0, "a", "My name is Anna."), turn(2, "a", "The door is open."), turn(4, "a", "Do you like my coat?"),
        turn(6, text="What would you like?", speaker=Speaker.ROBOT), turn(8, "a", "Tea, please."),
        turn(10, "a", "我有一只狗。"),
    ]  # fmt: skip
    memory.update(told, [], at(0), at(20))
    assert [fact.turn.text for fact in memory.facts(at(20))] == ["My name is Anna.", "我有一只狗。"]


def test_speaker_is_a_tracked_person_only_if_certain() -> None:
    one, two = [seen(1, "p1")], [seen(1, "p1", "p2", engaged="p2")]
    assert person_of(turn(1, "voice7"), one) == "p1"
    assert person_of(turn(1), two) == "p2"
    assert person_of(turn(1, "voice7"), two) == "voice7"
    assert person_of(turn(1, "p1"), two) == "p1"
    assert person_of(turn(1), [seen(1, "p1", "p2")]) == USER
    assert person_of(turn(20), one) == USER  # seen too long ago
    assert person_of(turn(1), []) == USER


def test_person_who_comes_back_in_time_is_remembered() -> None:
    policy = MemoryConfig(remember_after_leaving_s=10)
    there, gone = [seen(s, "a") for s in range(5)], [seen(s) for s in range(5, 12)]
    short = replay_windows(PersonMemory(policy), [turn(1, "a")], [*there, *gone, seen(12, "a")], [20])
    assert list_remembered(short, "a") == ["a1"]
    long = replay_windows(PersonMemory(policy), [turn(1, "a")], [*there, *gone, seen(15), seen(16, "a")], [20])
    assert list_remembered(long, "a") == []
    assert [(c.name, c.count) for c in long.counters] == [("facts_of_departed", 1)]


def test_camera_without_faces_forgets_no_tracked_person() -> None:
    camera = [seen(s, topic="camera") for s in range(40)]  # turned elsewhere
    told = sorted([seen(s, "a") for s in range(0, 40, 2)] + camera, key=lambda p: p.stamp_ns)
    assert list_remembered(replay_windows(PersonMemory(MemoryConfig()), [turn(1, "a")], told, [60]), "a") == ["a1"]


ANNA = user(0, 2, "My name is Anna.", person="a")
TWO = [*user(0, 2, "My name is Tom.", person="t"), *user(4, 6, "And my name is Anna.", person="a")]
UNKNOWN, PETER = user(3, 4, "My name is Anna."), robot(60, 62, "Nice to meet you, Peter.")


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ([*UNKNOWN, *robot(600, 602, "Nice to meet you, Peter.")], True),
        ([*ANNA, *user(50, 51, "Nice weather today.", person="a"), *PETER], True),
        ([*ANNA, *user(50, 51, "Nice weather today.", person="b"), *PETER], False),
        ([*TWO, *robot(7, 9, "Thank you, Tom.")], False),
        ([*TWO, *robot(7, 9, "Thank you, Peter.")], True),
        ([*UNKNOWN, seen(50, topic="camera"), *PETER], True),
        ([*UNKNOWN, *(seen(second, topic="camera") for second in range(10, 51)), *PETER], False),  # a newcomer
    ],
)
def test_wrong_name_is_one_that_nobody_present_gave(meaning: EncoderMatcher, entries: list[Entry], wrong: bool) -> None:
    flags = last_of(Watched(meaning, fusion=ALL, words=1).watch(entries, until_s=620))
    assert ("wrong_name" in flags) is wrong
