"""A robot that talks on after a person told it to stop."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

# A longer turn asks for more than to stop.
_MOST_WORDS = 8


def stopping(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person says "stop" into the robot's turn, and the robot talks on."""
    cue = table.cues["ignores_stop"]
    longest_s = cue.value("talks_on_s")
    for user in scene.recent:
        if user.is_robot or user.word_count > _MOST_WORDS or not (match := matcher.match(user.text, "stop")):
            continue
        robot = next((one for one in scene.robot_turns if one.start_ns < user.start_ns <= one.end_ns), None)
        if robot is None:
            continue  # the robot was silent: "turn the heating off" is another request
        on_ns = robot.active_ns(user.end_ns, robot.end_ns)
        if on_ns > s_to_ns(longest_s):
            yield table.finding(
                "ignores_stop",
                Unit.of_turn(robot),
                anchor=user.turn_id,
                evidence=[
                    evidence_of(user, "nearness to a request to stop", match.nearness, match.threshold),
                    evidence_of(robot, "robot talks on for", ns_to_s(on_ns), longest_s, "s"),
                ],
                rationale=f"The person said {quote(user)}, and the robot talked on for {ns_to_s(on_ns):.1f} s.",
            )
