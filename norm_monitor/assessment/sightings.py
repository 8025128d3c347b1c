"""People who come near, leave and look away."""

import re
from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.assessment.finding import CueAnswer, RequestWindowAt, evidence_of, quote, quote_end
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import WordMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn

# The newest presence of people is valid for so long.
PRESENCE_VALID_NS = 2 * NS_PER_S
# Concepts of parting, and of calling after somebody.
_PARTING = ("farewell", "be_right_back", "thanks")
_CALLS_AFTER = ("check_in", "farewell", "be_right_back")
# A person who refuses and goes does not take leave, even with thanks.
_REFUSES = re.compile(r"\bno,? (thanks|thank you)\b|\bnot (now|today|interested)\b|不用了|不了", re.IGNORECASE)
# Words up to this long before a departure belong to it.
_MAX_LAST_WORDS_GAP_NS = 15 * NS_PER_S
# Words up to this long before or after a small distance show its purpose.
_MAX_PURPOSE_GAP_NS = 10 * NS_PER_S
# Something changes hands, or a person does something at the robot.
_HANDS_OVER = re.compile(
    r"\b(here('s| is| are|,)|there you (go|are)|got it|sign|scan|stamp|tap|press|touch|hold (this|that|it|out)"
    r"|(take|put|place) (it|this|that|these|them|your|the)|on my (tray|screen)|thank you|thanks)\b|谢谢|签",
    re.IGNORECASE,
)
# Complaints about a robot that is too near, whatever it came for.
_TOO_NEAR = re.compile(
    r"\btoo (close|near)\b|\bin my face\b|\bdown (my|our) necks?\b|\bback (off|up|away)\b|\b(some|more) (room|space)\b"
    r"|\bstep back\b|\b(whoa|hey, hey)\b|\bmy (foot|feet|toes?)\b|太近|别靠|走开|远一点",
    re.IGNORECASE,
)
# The probability once it turns out late that nearness was wanted or had a purpose; it withdraws a flag.
_EXCUSED_PROBABILITY = 0.1


def find_away_spells(presences: tuple[Presence, ...]) -> list[tuple[int, Presence]]:
    """Return the start and the last presence of each spell in which every face looks away."""
    last: dict[int, Presence] = {}
    for presence in presences:
        if presence.away_since_ns is not None:
            last[presence.away_since_ns] = presence
    return sorted(last.items())


def find_departures(presences: tuple[Presence, ...]) -> list[tuple[int, Presence]]:
    """Return when someone was last seen, each with the newest presence that shows nobody."""
    last: dict[int, Presence] = {}
    for presence in presences:
        if presence.state is not PresenceState.PRESENT and presence.last_seen_ns is not None:
            last[presence.last_seen_ns] = presence
    return sorted(last.items())


def find_valid_until_ns(scene: Scene, last: Presence) -> int:
    """Return until when a presence is valid: the newest for a while, an earlier one until its stamp."""
    newest = next(presence for presence in reversed(scene.presences) if presence.source_topic == last.source_topic)
    return last.stamp_ns if last is not newest else min(scene.end_ns, last.stamp_ns + PRESENCE_VALID_NS)


def choose_unit(what: str, onset_ns: int, offset_ns: int, robot: Turn) -> Unit:
    """Return the unit of the robot's turn if it began afterwards, else of the sighting."""
    if robot.start_ns >= onset_ns:
        return Unit.of_turn(robot)
    return Unit.of_sighting(what, onset_ns, max(onset_ns, offset_ns))


def cite_sighting(presence: Presence, measure: str, since_ns: int, value: float, threshold: float) -> Evidence:
    """Return the duration of a sighting as evidence."""
    return Evidence(
        measure=measure,
        value=round(value, 3),
        threshold=threshold,
        unit="s",
        start_ns=since_ns,
        end_ns=presence.stamp_ns,
        source_topic=presence.source_topic,
    )


def find_looking_away(scene: Scene, table: ThresholdTable, matcher: WordMatcher) -> Iterator[CueAnswer]:
    """Find people who look away for long while the robot talks on."""
    cue = table.cues["ignores_looking_away"]
    min_away_ns, min_talk_ns = s_to_ns(cue.value("away_s")), s_to_ns(cue.value("talks_on_s"))
    for since_ns, last in find_away_spells(scene.presences):
        until_ns = find_valid_until_ns(scene, last)
        if until_ns < scene.start_ns:
            continue
        counts_from_ns = since_ns + min_away_ns
        robot = next((r for r in scene.robot_turns if r.active_ns(counts_from_ns, until_ns) >= min_talk_ns), None)
        if robot is None:
            talking = next((r for r in scene.robot_turns if r.end_ns > counts_from_ns and r.ongoing), None)
            due_ns = max(counts_from_ns, talking.start_ns) + min_talk_ns if talking else counts_from_ns + min_talk_ns
            if until_ns < due_ns:
                yield RequestWindowAt(at_ns=due_ns)
            continue
        if matcher.match(robot.text, "check_in"):
            continue
        away_s = ns_to_s(until_ns - since_ns)
        yield table.finding(
            "ignores_looking_away",
            choose_unit("looking_away", since_ns, min(robot.end_ns, until_ns), robot),
            severity=cue.severity_of("away_s", away_s),
            evidence=[
                cite_sighting(last, "looking away for", since_ns, away_s, cue.value("away_s")),
                evidence_of(robot, "robot talks on, words", robot.word_count),
            ],
            rationale=f"While the person looked away for {away_s:.1f} s, the robot said {quote(robot)}.",
        )


def find_leaving(scene: Scene, table: ThresholdTable, matcher: WordMatcher) -> Iterator[CueAnswer]:
    """Find people who leave while the robot talks on, or before it begins to talk to nobody."""
    cue = table.cues["ignores_leaving"]
    lost_ns = s_to_ns(cue.value("lost_s"))
    for gone_ns, last in find_departures(scene.presences):
        until_ns = find_valid_until_ns(scene, last)
        if until_ns < scene.start_ns:
            continue
        if until_ns < gone_ns + lost_ns:
            yield RequestWindowAt(at_ns=gone_ns + lost_ns)
            continue
        for robot in scene.robot_turns:
            if robot.end_ns <= gone_ns or robot.start_ns >= until_ns or robot.end_ns < scene.start_ns:
                continue
            begins_talk, due_ns = _find_due_ns(scene, table, robot, gone_ns)
            ends_in_time = robot.end_ns <= due_ns and not begins_talk and not robot.ongoing
            if ends_in_time or _is_excused(scene, matcher, robot, gone_ns, lost_ns):
                continue
            if until_ns <= due_ns:
                yield RequestWindowAt(at_ns=due_ns + 1)
            else:
                yield _report_leaving(table, robot, gone_ns, until_ns, last)


def _find_due_ns(scene: Scene, table: ThresholdTable, robot: Turn, gone_ns: int) -> tuple[bool, int]:
    """Return whether the robot begins to talk to nobody, and when that can be decided.

    Otherwise it may speak until that time: it notices a departure late, and may answer the last words.
    """
    cue = table.cues["ignores_leaving"]
    lost_ns = s_to_ns(cue.value("lost_s"))
    if robot.start_ns <= gone_ns:
        return False, gone_ns + lost_ns
    before = scene.user_turn_before(robot)
    if robot.start_ns <= max(gone_ns, before.end_ns if before else gone_ns) + lost_ns:
        return False, robot.start_ns + s_to_ns(cue.value("answer_s"))
    return True, robot.start_ns + lost_ns  # by then a newcomer is seen


def _is_excused(scene: Scene, matcher: WordMatcher, robot: Turn, gone_ns: int, lost_ns: int) -> bool:
    """Whether they took leave, the robot calls after the person, or somebody talks out of view."""
    if _has_concept(matcher, robot, _CALLS_AFTER):
        return True
    if any(gone_ns + lost_ns // 2 < user.end_ns and user.start_ns <= robot.start_ns for user in scene.user_turns):
        return True
    last_turns = [
        turn for turn in scene.turns if gone_ns - _MAX_LAST_WORDS_GAP_NS <= turn.start_ns <= gone_ns + lost_ns
    ]
    if robot.start_ns > gone_ns or any(not turn.is_robot and _REFUSES.search(turn.text) for turn in last_turns):
        return False
    return any(_has_concept(matcher, turn, _PARTING) for turn in last_turns)


def _report_leaving(table: ThresholdTable, robot: Turn, gone_ns: int, until_ns: int, last: Presence) -> CueAnswer:
    """Return the finding that the robot talks although the person left."""
    lost_s = table.cues["ignores_leaving"].value("lost_s")
    return table.finding(
        "ignores_leaving",
        choose_unit("leaving", gone_ns, robot.end_ns, robot),
        evidence=[
            cite_sighting(last, "out of sight for", gone_ns, ns_to_s(until_ns - gone_ns), lost_s),
            evidence_of(robot, "robot talks on, words", robot.word_count),
        ],
        rationale=f"The person had left, and the robot said {quote(robot)} to nobody."
        if robot.start_ns > gone_ns
        else f"The person left, and the robot kept talking until {quote_end(robot)}",
    )


def _has_concept(matcher: WordMatcher, turn: Turn, concepts: tuple[str, ...]) -> bool:
    """Whether a turn matches one of the concepts."""
    return any(matcher.match(turn.text, concept) for concept in concepts)


@record
class _Spell:
    """One uninterrupted stay at a small distance; `speed_m_s` is that of the approach."""

    person_id: str
    first_ns: int
    last_ns: int
    closest_m: float
    speed_m_s: float
    source_topic: str


def find_nearness(scene: Scene, table: ThresholdTable, matcher: WordMatcher) -> Iterator[CueAnswer]:
    """Find stays of the robot too near to a person, without anything handed over or touched."""
    cue = table.cues["too_near"]
    threshold_m = cue.value("distance_m")
    lasting_ns = s_to_ns(cue.value("lasting_s"))
    for spell in _find_near_spells(scene, threshold_m, s_to_ns(cue.value("approach_s"))):
        if spell.last_ns < scene.start_ns or spell.last_ns - spell.first_ns < lasting_ns:
            continue
        from_ns, until_ns = spell.first_ns - _MAX_PURPOSE_GAP_NS, spell.last_ns + _MAX_PURPOSE_GAP_NS
        about = [turn for turn in scene.turns if from_ns <= turn.start_ns <= until_ns]
        is_blamed = any(_TOO_NEAR.search(turn.text) for turn in about)
        excused_ns = None if is_blamed else _find_excuse_ns(matcher, spell, about, cue.value("walks_m_s"))
        if excused_ns is not None and excused_ns <= spell.first_ns + lasting_ns:
            continue
        yield table.finding(
            "too_near",
            Unit.of_sighting("too_near", spell.first_ns, spell.last_ns, spell.person_id),
            probability=None if excused_ns is None else _EXCUSED_PROBABILITY,
            evidence=[
                Evidence(
                    measure="distance", value=round(spell.closest_m, 2), threshold=threshold_m, unit="m",
                    start_ns=spell.first_ns, end_ns=spell.last_ns, source_topic=spell.source_topic,
                )
            ],
            rationale=f"The robot was within {threshold_m:g} m of the person for "
            f"{ns_to_s(spell.last_ns - spell.first_ns):.0f} s, at the nearest {spell.closest_m:.2f} m.",
        )  # fmt: skip


def _find_excuse_ns(matcher: WordMatcher, spell: _Spell, about: list[Turn], walks_m_s: float) -> int | None:
    """Return when it turned out that the person came near or something is handed over; None if it did not."""
    if spell.speed_m_s >= walks_m_s:
        return spell.first_ns
    first = next((turn for turn in about if turn.end_ns > spell.first_ns), None)
    if first and not first.is_robot and spell.first_ns < first.start_ns <= spell.last_ns:
        return first.start_ns  # the person came to talk
    for turn in about:
        if _HANDS_OVER.search(turn.text) or matcher.match(turn.text, "handing_over"):
            return turn.start_ns
    return None


def _find_near_spells(scene: Scene, threshold_m: float, approach_ns: int) -> list[_Spell]:
    """Return each uninterrupted stay of a person nearer than a distance."""
    spells: dict[tuple[str, str, int], _Spell] = {}
    open_since: dict[tuple[str, str], int] = {}
    track: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for presence in scene.presences:
        source = presence.source_topic  # a camera that cannot measure distance does not end another source's approach
        distances = {p.person_id: p.distance_m for p in presence.persons if p.distance_m is not None}
        for key in [
            key for key in open_since if key[0] == source and distances.get(key[1], threshold_m) >= threshold_m
        ]:
            del open_since[key]
        for person_id, distance_m in distances.items():
            key, at_ns = (source, person_id), presence.stamp_ns
            track.setdefault(key, []).append((at_ns, distance_m))
            if distance_m >= threshold_m:
                continue
            first_ns = open_since.setdefault(key, at_ns)
            spell = spells.get((*key, first_ns))
            spells[*key, first_ns] = _Spell(
                person_id=person_id,
                first_ns=first_ns,
                last_ns=at_ns,
                closest_m=min(distance_m, spell.closest_m if spell else distance_m),
                speed_m_s=spell.speed_m_s if spell else _measure_speed_m_s(track[key], approach_ns),
                source_topic=source,
            )
    return list(spells.values())


def _measure_speed_m_s(track: list[tuple[int, float]], approach_ns: int) -> float:
    """Return the mean speed towards the robot at the end of an approach, or 0 where too little is known."""
    end_ns, end_m = track[-1]
    start_ns, start_m = next(point for point in track if point[0] >= end_ns - approach_ns)
    return (start_m - end_m) / ns_to_s(end_ns - start_ns) if 2 * (end_ns - start_ns) >= approach_ns else 0.0
