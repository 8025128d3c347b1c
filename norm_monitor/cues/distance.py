"""The robot's distance to people, if it is known."""

import re
from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Findings
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# Words within this time tell what a small distance is for.
_ABOUT_NS = 10 * NS_PER_S
# Something changes hands, or a person does something at the robot.
_HANDS_OVER = re.compile(
    r"\b(here('s| is| are|,)|there you (go|are)|got it|sign|scan|stamp|tap|press|touch|hold (this|that|it|out)"
    r"|(take|put|place) (it|this|that|these|them|your|the)|on my (tray|screen)|thank you|thanks)\b|谢谢|签",
    re.IGNORECASE,
)
# What is said of a robot that is too near, whatever it came for.
_TOO_NEAR = re.compile(
    r"\btoo (close|near)\b|\bin my face\b|\bdown (my|our) necks?\b|\bback (off|up|away)\b|\b(some|more) (room|space)\b"
    r"|\bstep back\b|\b(whoa|hey, hey)\b|\bmy (foot|feet|toes?)\b|太近|别靠|走开|远一点",
    re.IGNORECASE,
)
# The probability where it turns out late that nearness was the person's choice or for something: this withdraws a flag.
_EXCUSED = 0.1


@record
class _Spell:
    """One uninterrupted stay at a small distance; `speed_m_s` is that of the approach."""

    person_id: str
    first_ns: int
    last_ns: int
    least_m: float
    speed_m_s: float
    source_topic: str


def nearness(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot stays within a person's intimate distance without handing over or touching anything."""
    cue = table.cues["too_near"]
    nearest_m, lasting_ns = cue.value("distance_m"), s_to_ns(cue.value("lasting_s"))
    for spell in _spells(scene, nearest_m, s_to_ns(cue.value("approach_s"))):
        if spell.last_ns < scene.start_ns or spell.last_ns - spell.first_ns < lasting_ns:
            continue
        about = [t for t in scene.turns if spell.first_ns - _ABOUT_NS <= t.start_ns <= spell.last_ns + _ABOUT_NS]
        is_blamed = any(_TOO_NEAR.search(turn.text) for turn in about)
        excused_ns = None if is_blamed else _excused_ns(matcher, spell, about, cue.value("walks_m_s"))
        if excused_ns is not None and excused_ns <= spell.first_ns + lasting_ns:
            continue
        yield table.finding(
            "too_near",
            Unit.of_sighting("too_near", spell.first_ns, spell.last_ns, spell.person_id),
            probability=None if excused_ns is None else _EXCUSED,
            evidence=[
                Evidence(
                    measure="distance", value=round(spell.least_m, 2), threshold=nearest_m, unit="m",
                    start_ns=spell.first_ns, end_ns=spell.last_ns, source_topic=spell.source_topic,
                )
            ],
            rationale=f"The robot was within {nearest_m:g} m of the person for "
            f"{ns_to_s(spell.last_ns - spell.first_ns):.0f} s, at the nearest {spell.least_m:.2f} m.",
        )  # fmt: skip


def _excused_ns(matcher: TextMatcher, spell: _Spell, about: list[Turn], walks_m_s: float) -> int | None:
    """Return since when it is known that the person came, or that something is handed over; None if it is not."""
    if spell.speed_m_s >= walks_m_s:
        return spell.first_ns
    first = next((turn for turn in about if turn.end_ns > spell.first_ns), None)
    if first and not first.is_robot and spell.first_ns < first.start_ns <= spell.last_ns:
        return first.start_ns  # the person came to talk
    handing = (t for t in about if _HANDS_OVER.search(t.text) or matcher.match(t.text, "handing_over"))
    return next((turn.start_ns for turn in handing), None)


def _spells(scene: Scene, nearest_m: float, approach_ns: int) -> list[_Spell]:
    """Return each uninterrupted stay of a person at less than a distance."""
    spells: dict[tuple[str, str, int], _Spell] = {}
    open_since: dict[tuple[str, str], int] = {}
    track: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for presence in scene.presences:
        source = presence.source_topic  # a camera that cannot measure distance does not end another source's approach
        distances = {p.person_id: p.distance_m for p in presence.persons if p.distance_m is not None}
        for key in [key for key in open_since if key[0] == source and distances.get(key[1], nearest_m) >= nearest_m]:
            del open_since[key]
        for person_id, distance_m in distances.items():
            key, at_ns = (source, person_id), presence.stamp_ns
            track.setdefault(key, []).append((at_ns, distance_m))
            if distance_m >= nearest_m:
                continue
            first_ns = open_since.setdefault(key, at_ns)
            known = spells.get((*key, first_ns))
            spells[*key, first_ns] = _Spell(
                person_id=person_id,
                first_ns=first_ns,
                last_ns=at_ns,
                least_m=min(distance_m, known.least_m if known else distance_m),
                speed_m_s=known.speed_m_s if known else _speed_m_s(track[key], approach_ns),
                source_topic=source,
            )
    return list(spells.values())


def _speed_m_s(track: list[tuple[int, float]], approach_ns: int) -> float:
    """Return the mean speed towards the robot over the last moments of an approach, or 0 where too little is known."""
    end_ns, end_m = track[-1]
    start_ns, start_m = next((at_ns, m) for at_ns, m in track if at_ns >= end_ns - approach_ns)
    return (start_m - end_m) / ns_to_s(end_ns - start_ns) if 2 * (end_ns - start_ns) >= approach_ns else 0.0
