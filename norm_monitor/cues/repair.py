"""Repair: a person did not hear or understand, and the robot reacts."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.rudeness import rudeness
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def user_repair(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person did not understand what the robot said."""
    for turn in scene.recent:
        robot = scene.robot_turn_before(turn)
        if turn.is_robot or robot is None or not turn.text or rudeness(meaning, robot.text):
            continue  # to say a rude thing again mends nothing
        gap_s = ns_to_s(turn.start_ns - robot.end_ns)
        cue = table.cues["user_repair"]
        if gap_s > cue.value("within_s") and turn.timed:
            continue
        if turn.word_count <= cue.value("words") and (match := meaning.match(turn.text, "repair_request")):
            yield table.finding(
                "user_repair",
                Unit.of_turn(robot),
                anchor=turn.turn_id,
                evidence=[evidence_of(turn, "nearness to a request to repeat", match.nearness, match.threshold)],
                rationale=f"The person then asked {quote(turn)}, so the robot was not understood.",
            )
            yield from _repaired(scene, table, meaning, robot, turn)


def _repaired(scene: Scene, table: ThresholdTable, meaning: Meaning, robot: Turn, asked: Turn) -> Iterator[Findings]:
    reply = scene.next_robot_turn(asked)
    following = scene.next_user_turn(asked)
    if reply is None or reply.ongoing or (following and following.start_ns < reply.start_ns):
        return
    nearness, least = meaning.similarity(robot.text, reply.text), table.cues["repairs_at_once"].value("nearness")
    if nearness >= least and reply.start_ns - asked.end_ns < s_to_ns(4):
        yield table.finding(
            "repairs_at_once",
            Unit.of_turn(reply),
            evidence=[evidence_of(reply, "nearness to what was not understood", nearness, least)],
            rationale=f"The robot said it again as soon as it was asked to: {quote(reply)}.",
        )
