"""Spells in what was seen of people: turned away, or gone."""

from norm_core.records.flag import Evidence
from norm_core.records.presence import Presence, PresenceState
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.units.unit import Unit

# How long the newest presence of people is valid.
BELIEVED_NS = 2 * NS_PER_S


def away_spells(presences: tuple[Presence, ...]) -> list[tuple[int, Presence]]:
    """Return the start and the last presence of each spell in which every face looks away."""
    last: dict[int, Presence] = {}
    for presence in presences:
        if presence.away_since_ns is not None:
            last[presence.away_since_ns] = presence
    return sorted(last.items())


def departures(presences: tuple[Presence, ...]) -> list[tuple[int, Presence]]:
    """Return when someone was last seen, with the newest presence without anybody."""
    last: dict[int, Presence] = {}
    for presence in presences:
        if presence.state is not PresenceState.PRESENT and presence.last_seen_ns is not None:
            last[presence.last_seen_ns] = presence
    return sorted(last.items())


def known_until_ns(scene: Scene, last: Presence) -> int:
    """Return until when a presence is valid: the newest one for a while, an earlier one until its last sighting."""
    newest = next(one for one in reversed(scene.presences) if one.source_topic == last.source_topic)
    return last.stamp_ns if last is not newest else min(scene.end_ns, last.stamp_ns + BELIEVED_NS)


def nobody_is_seen(scene: Scene, start_ns: int, end_ns: int) -> bool:
    """Whether sources saw nobody between two times, and were there to see; one that fell silent before saw nothing."""
    before = {one.source_topic: one for one in scene.presences if one.stamp_ns <= start_ns}
    between = [one for one in scene.presences if start_ns < one.stamp_ns <= end_ns]
    sights = [*(one for one in before.values() if one.stamp_ns > start_ns - BELIEVED_NS), *between]
    return bool(before and between) and all(one.state is not PresenceState.PRESENT for one in sights)


def sighting_or_turn(what: str, onset_ns: int, offset_ns: int, robot: Turn) -> Unit:
    """Return the robot's turn if it began afterwards, and what was seen if the robot was already speaking."""
    if robot.start_ns >= onset_ns:
        return Unit.of_turn(robot)
    return Unit.of_sighting(what, onset_ns, max(onset_ns, offset_ns))


def seen_evidence(presence: Presence, measure: str, since_ns: int, value: float, threshold: float) -> Evidence:
    """Return a duration that was seen as a measured fact."""
    return Evidence(
        measure=measure,
        value=round(value, 3),
        threshold=threshold,
        unit="s",
        start_ns=since_ns,
        end_ns=presence.stamp_ns,
        source_topic=presence.source_topic,
    )
