"""People who look away while the robot talks on."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings, RequestWindowAt, evidence_of, quote
from norm_monitor.cues.sightings import away_spells, known_until_ns, seen_evidence, sighting_or_turn
from norm_monitor.cues.threshold_table import ThresholdTable


def looking_away(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
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
                yield RequestWindowAt(at_ns=due_ns)
            continue
        if matcher.match(robot.text, "check_in"):
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
            rationale=f"While the person looked away for {away_s:.1f} s, the robot said {quote(robot)}.",
        )
