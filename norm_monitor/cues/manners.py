"""The robot's words to and about people: secrets, good wishes, offers, questions, and whether they fit feelings."""

from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_question, question_in
from norm_monitor.cues.finding import Findings, evidence_of, quote, quote_about
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

_SAID = {
    "disclosure": ("discloses", "The robot said {words}, which reads as telling something private about somebody."),
    "well_wish": ("wishes_well", "The robot said {words}, which reads as wishing the person well."),
    "reassuring": ("reassures", "The robot said {words}, which reads as putting the person at ease."),
    "offering": ("offers_help", "The robot said {words}, which reads as an offer of help."),
    "praise": ("encourages", "The robot said {words}, which reads as praise or encouragement."),
}


def manners(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reveals a secret, or says something kind to a person."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        for concept, (cue_id, note) in _SAID.items():
            if match := matcher.match(robot.text, concept):
                measure = f"nearness to {concept.replace('_', ' ')}"
                yield table.finding(
                    cue_id,
                    Unit.of_turn(robot),
                    evidence=[evidence_of(robot, measure, match.nearness, match.threshold)],
                    rationale=note.format(words=quote_about(robot, match.sentence)),
                )


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


def tone(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reacts to bad news with cheer or sympathy, or shares the joy in good news, as the words show them."""
    for user in scene.recent:
        if user.is_robot or (robot := scene.next_robot_turn(user)) is None or robot.ongoing:
            continue
        following = scene.next_user_turn(user)
        if following and following.start_ns < robot.start_ns:
            continue
        bad = matcher.match(user.text, "bad_news") or matcher.match(user.text, "unhappy_answer")
        if bad and (match := matcher.match(robot.text, "sympathy")):
            cue_id = "sympathises"
            note = (
                f"The robot said {quote_about(robot, match.sentence)}, which shows sympathy with the person's trouble."
            )
        elif bad and (match := matcher.match(robot.text, "enthusiasm")):
            cue_id = "cheerful_after_bad_news"
            note = f"The person said {quote_about(user, bad.sentence)}, and the robot answered cheerfully."
        elif (
            not bad
            and matcher.match(user.text, "good_news")
            and (match := matcher.match(robot.text, "congratulation") or matcher.match(robot.text, "enthusiasm"))
        ):
            cue_id = "shares_joy"
            note = f"The robot said {quote_about(robot, match.sentence)}, which shares the joy in the person's news."
        else:
            continue
        yield table.finding(
            cue_id,
            Unit.of_turn(robot),
            anchor=user.turn_id,
            evidence=[
                evidence_of(user, "words of the person", user.word_count),
                evidence_of(robot, "nearness of the reply", match.nearness, match.threshold),
            ],
            rationale=note,
        )
