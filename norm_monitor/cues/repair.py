"""Repair: a person did not hear or understand the robot."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def user_repair(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person did not understand what the robot said."""
    for turn in scene.recent:
        robot = scene.robot_turn_before(turn)
        if turn.is_robot or robot is None or not turn.text:
            continue
        gap_s = ns_to_s(turn.start_ns - robot.end_ns)
        cue = table.cues["user_repair"]
        if gap_s > cue.value("within_s") and turn.timed:
            continue
        if turn.word_count <= cue.value("words") and (match := matcher.match(turn.text, "repair_request")):
            yield table.finding(
                "user_repair",
                Unit.of_turn(robot),
                anchor=turn.turn_id,
                evidence=[evidence_of(turn, "nearness to a request to repeat", match.nearness, match.threshold)],
                rationale=f"The person then asked {quote(turn)}, so the robot was not understood.",
            )
