"""People who look away or leave, and whether the robot reacts."""

from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_core.records.presence import Presence, PresenceState
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Findings, LookAgain, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# The time after a person turned away in which a question to them is a reaction.
_REACTION_NS = 8 * NS_PER_S
# Concepts of parting.
_PARTING = ("farewell", "be_right_back", "thanks")
# How long the newest presence of people is valid.
_BELIEVED_NS = 2 * NS_PER_S


def looking_away(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person looks away for long while the robot talks on."""
    cue = table.cues["ignores_looking_away"]
    least_ns, on_ns = s_to_ns(cue.value("away_s")), s_to_ns(cue.value("talks_on_s"))
    for since_ns, last in _spells(scene.presences, "away_since_ns"):
        until_ns = _known_until_ns(scene, last)
        if until_ns < scene.start_ns:
            continue
        ripe_ns = since_ns + least_ns
        robot = next((r for r in scene.robot_turns if r.active_ns(ripe_ns, until_ns) >= on_ns), None)
        if robot is None:
            talking = next((r for r in scene.robot_turns if r.end_ns > ripe_ns and r.ongoing), None)
            due_ns = max(ripe_ns, talking.start_ns) + on_ns if talking else ripe_ns + on_ns
            if until_ns < due_ns:
                yield LookAgain(at_ns=due_ns)
            continue
        if meaning.match(robot.text, "check_in"):
            continue
        away_s = ns_to_s(until_ns - since_ns)
        yield table.finding(
            "ignores_looking_away",
            _unit("looking_away", since_ns, min(robot.end_ns, until_ns), robot),
            severity=cue.severity_of("away_s", away_s),
            evidence=[
                _seen(last, "looking away for", since_ns, away_s, cue.value("away_s")),
                evidence_of(robot, "robot talks on, words", robot.word_count),
            ],
            rationale=f"The person looked away for {away_s:.0f} s while the robot went on with {quote(robot)}.",
        )


def leaving(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person leaves mid-conversation and the robot talks on, or the robot starts to talk to nobody."""
    cue = table.cues["ignores_leaving"]
    lost_ns = s_to_ns(cue.value("lost_s"))
    for gone_ns, last in _departures(scene.presences):
        until_ns = _known_until_ns(scene, last)
        if until_ns < scene.start_ns:
            continue
        if until_ns < gone_ns + lost_ns:
            yield LookAgain(at_ns=gone_ns + lost_ns)
            continue
        robot = _talks_at(scene, gone_ns + lost_ns)
        if robot is None or _means(meaning, robot, ("check_in", *_PARTING)):
            continue
        lately = [turn for turn in scene.turns if gone_ns - 15 * NS_PER_S <= turn.start_ns <= gone_ns + lost_ns]
        if any(not turn.is_robot and turn.end_ns > gone_ns + lost_ns // 2 for turn in lately):
            continue  # somebody is present outside the camera's view
        parted = any(_means(meaning, turn, _PARTING) for turn in lately)
        if parted and robot.start_ns <= gone_ns:
            continue
        yield table.finding(
            "ignores_leaving",
            _unit("leaving", gone_ns, robot.end_ns, robot),
            evidence=[
                _seen(last, "out of sight for", gone_ns, ns_to_s(until_ns - gone_ns), cue.value("lost_s")),
                evidence_of(robot, "robot talks on, words", robot.word_count),
            ],
            rationale=f"The person had left, and the robot said to nobody {quote(robot)}."
            if robot.start_ns > gone_ns
            else f"The person left without a farewell, and the robot went on with {quote(robot)}.",
        )


def checks_in(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot asks whether a person is still attentive, or wants to continue."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        if match := meaning.match(robot.text, "check_in"):
            turned = _turned_before(scene, robot)
            yield table.finding(
                "checks_in",
                Unit.of_turn(robot),
                probability=0.8 if turned else None,
                evidence=[evidence_of(robot, "nearness to checking in", match.nearness, match.threshold)],
                rationale=f"The robot checked whether the person was with it: {quote(robot)}"
                + (", just after they had turned away." if turned else "."),
            )


def _unit(what: str, onset_ns: int, offset_ns: int, robot: Turn) -> Unit:
    """Return the robot's turn if it began afterwards, and what was seen if the robot was already speaking."""
    if robot.start_ns >= onset_ns:
        return Unit.of_turn(robot)
    return Unit.of_sighting(what, onset_ns, max(onset_ns, offset_ns))


def _known_until_ns(scene: Scene, last: Presence) -> int:
    """Return until when a presence is valid: the newest one for a while, an earlier one until its last sighting."""
    newest = next(one for one in reversed(scene.presences) if one.source_topic == last.source_topic)
    return last.stamp_ns if last is not newest else min(scene.end_ns, last.stamp_ns + _BELIEVED_NS)


def _turned_before(scene: Scene, robot: Turn) -> bool:
    starts = [since_ns for since_ns, _ in _spells(scene.presences, "away_since_ns")]
    starts += [gone_ns for gone_ns, _ in _departures(scene.presences)]
    return any(0 <= robot.start_ns - start_ns <= _REACTION_NS for start_ns in starts)


def _means(meaning: Meaning, turn: Turn, concepts: tuple[str, ...]) -> bool:
    return any(meaning.match(turn.text, concept) for concept in concepts)


def _talks_at(scene: Scene, at_ns: int) -> Turn | None:
    return next((r for r in scene.robot_turns if any(s <= at_ns < e for s, e in r.spans)), None)


def _spells(presences: tuple[Presence, ...], field: str) -> list[tuple[int, Presence]]:
    """Return the start and the last presence of each spell of a field that is None outside spells."""
    last: dict[int, Presence] = {}
    for presence in presences:
        since_ns = getattr(presence, field)
        if since_ns is not None:
            last[since_ns] = presence
    return sorted(last.items())


def _departures(presences: tuple[Presence, ...]) -> list[tuple[int, Presence]]:
    """Return when someone was last seen, with the newest presence without anybody."""
    last: dict[int, Presence] = {}
    for presence in presences:
        if presence.state is not PresenceState.PRESENT and presence.last_seen_ns is not None:
            last[presence.last_seen_ns] = presence
    return sorted(last.items())


def _seen(presence: Presence, measure: str, since_ns: int, value: float, threshold: float) -> Evidence:
    return Evidence(
        measure=measure,
        value=round(value, 3),
        threshold=threshold,
        unit="s",
        start_ns=since_ns,
        end_ns=presence.stamp_ns,
        source_topic=presence.source_topic,
    )
