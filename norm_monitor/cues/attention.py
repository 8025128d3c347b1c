"""People who look away, and whether the robot reacts."""

from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Findings, LookAgain, evidence_of, quote, quote_about
from norm_monitor.cues.sightings import away_spells, departures, known_until_ns, seen_evidence, sighting_or_turn
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# The time after a person turned away in which a question to them is a reaction.
_REACTION_NS = 8 * NS_PER_S


def looking_away(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person looks away for long while the robot talks on."""
    cue = table.cues["ignores_looking_away"]
    least_ns, on_ns = s_to_ns(cue.value("away_s")), s_to_ns(cue.value("talks_on_s"))
    for since_ns, last in away_spells(scene.presences):
        until_ns = known_until_ns(scene, last)
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
            sighting_or_turn("looking_away", since_ns, min(robot.end_ns, until_ns), robot),
            severity=cue.severity_of("away_s", away_s),
            evidence=[
                seen_evidence(last, "looking away for", since_ns, away_s, cue.value("away_s")),
                evidence_of(robot, "robot talks on, words", robot.word_count),
            ],
            rationale=f"While the person looked away for {away_s:.0f} s, the robot said {quote(robot)}.",
        )


def checks_in(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot asks whether a person is still attentive, or wants to continue."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        if match := meaning.match(robot.text, "check_in"):
            turned = _turned_before(scene, _said_ns(robot, match.sentence))
            yield table.finding(
                "checks_in",
                Unit.of_turn(robot),
                evidence=[evidence_of(robot, "nearness to checking in", match.nearness, match.threshold)],
                rationale=f"The robot asked {quote_about(robot, match.sentence)}"
                + (", just after the person had turned away." if turned else "."),
            )


def _said_ns(robot: Turn, sentence: str) -> int:
    """Return about when the robot began a sentence of its turn."""
    spoken_ns = robot.end_ns - robot.start_ns
    return robot.start_ns + spoken_ns * max(0, robot.text.find(sentence)) // max(1, len(robot.text))


def _turned_before(scene: Scene, said_ns: int) -> bool:
    starts = [since_ns for since_ns, _ in away_spells(scene.presences)]
    starts += [gone_ns for gone_ns, _ in departures(scene.presences)]
    return any(0 <= said_ns - start_ns <= _REACTION_NS for start_ns in starts)
