"""The robot asks a follow-up question about what a person tells."""

from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_question, question_in
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def follow_up(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot asks about what a person just told."""
    cue = table.cues["follow_up_question"]
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        evidence: Evidence | None = None
        if match := matcher.match(robot.text, "asking_follow_up"):
            evidence = evidence_of(robot, "nearness to a follow-up question", match.nearness, match.threshold)
        elif told := _statement_before(scene, robot):
            similarity = matcher.similarity(told.text, robot.text)
            if similarity >= cue.value("similarity"):
                evidence = evidence_of(told, "similarity of the question to it", similarity, cue.value("similarity"))
        if evidence:
            yield table.finding(
                "follow_up_question",
                Unit.of_turn(robot),
                evidence=[evidence],
                rationale=f"The robot asked {quote(robot)}, which follows up on what the person said.",
            )


def _statement_before(scene: Scene, robot: Turn) -> Turn | None:
    """Return what a person told, without a question, just before the robot's question."""
    before = next((turn for turn in reversed(scene.turns) if turn.start_ns < robot.start_ns), None)
    is_told = before is not None and not before.is_robot and not is_question(before.text)
    return before if is_told and question_in(robot.text) else None
