"""What the camera or the robot's recognisers saw change: comings, leavings, looks away, approaches."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from norm_core.records.presence import Presence, PresenceState
from norm_core.records.record import record

# The bound of personal space in proxemics; who crosses it comes near.
NEAR_M = 1.2


class SightingKind(StrEnum):
    """What was seen."""

    COMING = "coming"
    ANOTHER_COMING = "another_coming"
    LEAVING = "leaving"
    LOOKING_AWAY = "looking_away"
    LOOKING_BACK = "looking_back"
    COMING_NEAR = "too_near"


@record
class PresenceChange:
    """One change of who is there; `distance_m` is known for approaches alone."""

    at_ns: int
    kind: SightingKind
    person_id: str = ""
    distance_m: float | None = None


def sightings_of(presences: Iterable[Presence]) -> list[PresenceChange]:
    """Return the changes between successive presences of each source, in the order of time."""
    newest: dict[str, Presence] = {}
    found: list[PresenceChange] = []
    for presence in sorted(presences, key=lambda one: (one.stamp_ns, one.source_topic)):
        before = newest.get(presence.source_topic)
        newest[presence.source_topic] = presence
        if before is not None:
            found += _changes(before, presence)
    return sorted(found, key=lambda one: (one.at_ns, one.kind, one.person_id))


def _changes(before: Presence, now: Presence) -> Iterator[PresenceChange]:
    were_there, are_there = _are_there(before), _are_there(now)
    if were_there and not are_there:
        at_ns = now.stamp_ns if now.last_seen_ns is None else now.last_seen_ns
        yield PresenceChange(at_ns=at_ns, kind=SightingKind.LEAVING)
    elif are_there and not were_there:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.COMING)
    elif before.state is not PresenceState.LOST and _count(now) > max(1, _count(before)):
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.ANOTHER_COMING)
    if now.away_since_ns is not None and before.away_since_ns != now.away_since_ns:
        yield PresenceChange(at_ns=now.away_since_ns, kind=SightingKind.LOOKING_AWAY)
    elif before.away_since_ns is not None and now.away_since_ns is None and now.state is PresenceState.PRESENT:
        yield PresenceChange(at_ns=now.stamp_ns, kind=SightingKind.LOOKING_BACK)
    distances_m = {person.person_id: person.distance_m for person in before.persons}
    for person in now.persons:
        earlier_m = distances_m.get(person.person_id)
        if person.distance_m is not None and earlier_m is not None and person.distance_m < NEAR_M <= earlier_m:
            yield PresenceChange(
                at_ns=now.stamp_ns,
                kind=SightingKind.COMING_NEAR,
                person_id=person.person_id,
                distance_m=person.distance_m,
            )


def _are_there(presence: Presence) -> bool:
    """Whether anybody is in view; who is lost for a moment counts as there until they have left."""
    return presence.state in {PresenceState.PRESENT, PresenceState.LOST}


def _count(presence: Presence) -> int:
    return max(len(presence.faces), len(presence.persons))
