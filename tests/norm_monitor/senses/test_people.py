"""REP-155 people as presence: by stamps alone, bounded, whatever the order of arrival."""

import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from types import SimpleNamespace as Fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.records.presence import Engagement, Gaze, Presence, PresenceState
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, s_to_ns
from norm_monitor.senses.people.adapter import STRAYS_IN_A_ROW, NotPeopleError, PeopleAdapter, PeopleConfig
from tests.norm_monitor.senses.rep155 import gaze, ids, level, roi, tf, transform

START_NS = 1_000 * NS_PER_S
TOPIC = "/humans/persons/tracked"
TICK_NS = 200 * NS_PER_MS

Take = Callable[[PeopleAdapter], list[Presence]]


def at(seconds: float) -> int:
    return START_NS + s_to_ns(seconds)


def adapter(**values: Any) -> PeopleAdapter:
    return PeopleAdapter(PeopleConfig(**values), TOPIC)


def listed(seconds: float, *persons: str) -> tuple[int, Take]:
    return at(seconds), lambda people: people.ids(ids(at(seconds), *persons), 0)


def looks(seconds: float, sender: str, receiver: str = "") -> tuple[int, Take]:
    return at(seconds), lambda people: people.gaze(gaze(at(seconds), sender, receiver), 0)


def engaged(seconds: float, person: str, number: int) -> tuple[int, Take]:
    return at(seconds), lambda people: people.engagement(person, level(at(seconds), number), 0)


def stands(seconds: float, person: str, metres: float) -> tuple[int, Take]:
    moved = tf(transform(at(seconds), "base_link", f"person_{person}", (metres, 0.0, 0.0)))
    return at(seconds), lambda people: people.transforms(moved)


def told(people: PeopleAdapter, takes: Iterable[tuple[int, Take]]) -> list[Presence]:
    return [presence for _, take in takes for presence in take(people)] + people.flush()


def test_presence_holds_distance_gaze_and_engagement_of_two_persons() -> None:
    people = adapter()
    people.anchor("b", Fields(data="body_x"))
    people.transforms(tf(transform(at(0), "base_link", "body_x", (0.0, 1.5, 0.0))))
    last = told(people, [stands(0, "a", 2.0), engaged(0, "a", 3), looks(0, "a"), listed(0, "b", "a")])[-1]
    assert (last.state, last.since_ns, last.last_seen_ns, last.away_since_ns) == (
        PresenceState.PRESENT, at(0), at(0), None,
    )  # fmt: skip
    assert (last.source_topic, last.frame_id) == (TOPIC, "base_link")
    assert [(p.person_id, p.distance_m, p.engagement, p.gaze) for p in last.persons] == [
        ("a", 2.0, Engagement.ENGAGED, Gaze.AT_ROBOT),
        ("b", 1.5, Engagement.UNKNOWN, Gaze.UNKNOWN),
    ]


def test_faces_count_until_somebody_lists_persons() -> None:
    people = adapter()
    takes: list[tuple[int, Take]] = [
        (at(0), lambda people: people.ids(ids(at(0), "f1", "f2", "f3"), 0, of_faces=True)),
        (at(0), lambda people: people.face("f1", roi(at(0), 0.1, 0.1, 0.2, 0.3), 0)),
        (at(0), lambda people: people.face("f2", roi(at(0), 0.5, 0.1, 0.75, 0.5), 0)),
        (at(2), lambda people: people.ids(ids(at(2)), 0, of_faces=True)),
        listed(3, "a"),
    ]
    presences = told(people, takes)
    both, nobody, person = presences
    assert [(face.left_ratio, face.width_ratio) for face in both.faces] == [(0.5, 0.25), (0.1, 0.1)]
    assert (both.source_topic, both.state) == ("/humans/faces/tracked", PresenceState.PRESENT)
    assert (nobody.faces, nobody.state) == ((), PresenceState.LEFT)
    assert ([p.person_id for p in person.persons], person.faces, person.source_topic) == (["a"], (), TOPIC)


@pytest.mark.parametrize("box", [(0.5, 0, 0.4, 1), (-0.1, 0, 1, 1), (0, 0, 640, 480), (0, 0, float("nan"), 1)])
def test_a_box_outside_the_picture_is_refused(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(NotPeopleError, match="fractions of the picture"):
        adapter().face("f1", roi(at(0), *box), 0)


def test_a_tracked_person_comes_leaves_and_comes_back() -> None:
    takes = [listed(i / 5, *(["a"] if i < 10 or i >= 30 else [])) for i in range(35)]
    presences = told(adapter(left_after_s=2.0), takes)
    states = [presence.state for presence in presences]
    changes = [state for i, state in enumerate(states) if not i or state is not states[i - 1]]
    assert changes == [
        PresenceState.PRESENT, PresenceState.LOST, PresenceState.LEFT, PresenceState.ABSENT, PresenceState.PRESENT,
    ]  # fmt: skip
    left = next(p for p in presences if p.state is PresenceState.LEFT)
    assert (left.stamp_ns, left.last_seen_ns, left.since_ns) == (at(3.8), at(1.8), at(0))
    assert (presences[-1].since_ns, presences[-1].last_seen_ns) == (at(6), at(6.8))


def test_away_follows_gaze_and_otherwise_engagement() -> None:
    takes = [listed(i / 5, "a") for i in range(20)]
    takes += [looks(1, "a", "b"), looks(1.5, "a", "b"), looks(2, "a"), engaged(2, "a", 4)]
    presences = told(adapter(believed_s=1.0), sorted(takes, key=lambda take: take[0]))
    by_time = {presence.stamp_ns: presence.away_since_ns for presence in presences}
    assert by_time[at(0.8)] is None
    assert by_time[at(1)] == by_time[at(1.8)] == at(1)
    assert by_time[at(2)] is by_time[at(3)] is None  # disengaging, but with the eyes on the robot
    assert by_time[at(3.2)] == at(3.2)  # that gaze is told no more


def test_a_group_is_away_only_when_everyone_is() -> None:
    takes = [listed(0, "a", "b"), looks(0, "a", "b"), looks(0, "b"), listed(0.4, "a", "b"), looks(0.4, "b", "a")]
    presences = told(adapter(), takes)
    assert [presence.away_since_ns for presence in presences] == [None, at(0.4)]


def arm_moves(second: float) -> Take:
    return lambda people: people.transforms(tf(transform(at(second), "base_link", "arm", (1.0, 0.0, 0.0))))


def test_a_list_sent_only_on_change_holds_while_messages_come() -> None:
    takes = [listed(0, "a"), *(stands(i / 5, "a", 1.0) for i in range(1, 100))]
    takes += [(at(20 + i / 5), arm_moves(20 + i / 5)) for i in range(100)]
    people = adapter(forgotten_after_s=10.0)
    presences = {presence.stamp_ns: presence for presence in told(people, takes)}
    assert presences[at(19.8)].persons[0].distance_m == 1.0
    assert presences[at(29)].state is PresenceState.PRESENT
    assert presences[at(29)].persons[0].distance_m is None
    assert presences[at(30)].state is PresenceState.LOST
    assert people.counts["persons_timed_out"] > 0


def test_persons_are_bounded_and_counted() -> None:
    people = adapter()
    last = told(people, [listed(0, *(f"p{i:03}" for i in range(40)), "p001", "")])[-1]
    assert len(last.persons) == 32
    assert people.counts["persons_over_limit"] == 8
    for index in range(1000):
        people.gaze(gaze(at(0), f"g{index}", "x"), 0)
        people.anchor(f"g{index}", Fields(data="f"))
    assert people.counts["persons_evicted"] == 2 * (1000 - 128)


def test_a_jump_back_begins_anew_and_strays_of_tf_do_not() -> None:
    people = adapter()
    told(people, [listed(0, "a"), listed(1, "a")])
    stray = tf(transform(at(-3600), "base_link", "arm", (1.0, 0.0, 0.0)))
    for _ in range(STRAYS_IN_A_ROW - 1):
        assert people.transforms(stray) == []
    assert people.tracked_ids == ("a",)
    assert people.counts["transforms_wrong_time"] == STRAYS_IN_A_ROW - 1
    presences = told(people, [listed(-3600, "a"), listed(-3599, "a")])
    assert [presence.since_ns for presence in presences] == [at(-3600)] * 2
    assert people.counts["stamps_jumped"] == 1


def test_missing_fields_are_refused_and_new_levels_are_unknown() -> None:
    people = adapter()
    for take in (people.ids, people.gaze):
        with pytest.raises(NotPeopleError):
            take(Fields(angle=3), 0)
    last = told(people, [listed(0, "a"), engaged(0, "a", 9)])[-1]
    assert last.persons[0].engagement is Engagement.UNKNOWN
    assert people.counts["engagement_levels_unknown"] == 1


moments = st.integers(0, 100).map(lambda tenth: tenth / 10)
persons = st.sampled_from("abc")
happenings = st.lists(
    st.one_of(
        st.builds(lambda s, who: listed(s, *sorted(who)), moments, st.sets(persons)),
        st.builds(looks, moments, persons, st.sampled_from(["", "x"])),
        st.builds(engaged, moments, persons, st.integers(0, 4)),
        st.builds(stands, moments, persons, st.floats(0.1, 9)),
    ),
    max_size=60,
    unique_by=lambda take: take[0],
)


@settings(max_examples=60)
@given(happenings, st.randoms(use_true_random=False))
def test_within_the_settling_time_the_order_of_arrival_changes_nothing(
    takes: list[tuple[int, Take]], chance: random.Random
) -> None:
    in_order = sorted(takes, key=lambda take: take[0])
    mixed = sorted(takes, key=lambda take: take[0] + chance.randrange(s_to_ns(0.4)))
    first, other = adapter(settle_s=0.5), adapter(settle_s=0.5)
    assert told(first, in_order) == told(other, mixed)
    assert not other.counts["messages_late"]


@settings(max_examples=60)
@given(happenings)
def test_presences_in_any_order_are_at_least_a_period_apart(takes: list[tuple[int, Take]]) -> None:
    presences = told(adapter(), takes)
    stamps = [presence.stamp_ns for presence in presences]
    assert all(later - earlier >= TICK_NS for earlier, later in pairwise(stamps))
    for presence in presences:
        assert presence.stamp_ns % TICK_NS == 0
        assert (presence.state is PresenceState.PRESENT) == bool(presence.persons)
        assert all(
            at_ns is None or at_ns <= presence.stamp_ns for at_ns in (presence.last_seen_ns, presence.away_since_ns)
        )
        assert [p.person_id for p in presence.persons] == sorted({p.person_id for p in presence.persons})
