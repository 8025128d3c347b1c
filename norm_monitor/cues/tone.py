"""Whether the robot's words fit a person's feelings, as their words show them; voices and faces are not used."""

from collections.abc import Iterator

from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.cues.finding import Findings, evidence_of, quote_about
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def tone(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reacts to bad news with cheer or sympathy, or shares the joy in good news."""
    for user in scene.recent:
        if user.is_robot or (robot := scene.next_robot_turn(user)) is None or robot.ongoing:
            continue
        following = scene.next_user_turn(user)
        if following and following.start_ns < robot.start_ns:
            continue
        bad = matcher.match(user.text, "bad_news") or matcher.match(user.text, "unhappy_answer")
        good = matcher.match(user.text, "good_news")
        if bad:
            yield from _after_bad_news(user, robot, bad, table, matcher)
        elif good and (match := matcher.match(robot.text, "congratulation") or matcher.match(robot.text, "enthusiasm")):
            yield _found(
                "shares_joy",
                user,
                robot,
                match,
                table,
                f"The robot said {quote_about(robot, match.sentence)}, which shares the joy in the person's news.",
            )


def _after_bad_news(
    user: Turn, robot: Turn, bad: Match, table: ThresholdTable, matcher: TextMatcher
) -> Iterator[Findings]:
    if match := matcher.match(robot.text, "sympathy"):
        yield _found(
            "sympathises",
            user,
            robot,
            match,
            table,
            f"The robot said {quote_about(robot, match.sentence)}, which shows sympathy with the person's trouble.",
        )
    elif match := matcher.match(robot.text, "enthusiasm"):
        yield _found(
            "cheerful_after_bad_news",
            user,
            robot,
            match,
            table,
            f"The person said {quote_about(user, bad.sentence)}, and the robot answered cheerfully.",
        )


def _found(cue_id: str, user: Turn, robot: Turn, match: Match, table: ThresholdTable, rationale: str) -> Findings:  # noqa: PLR0917
    return table.finding(
        cue_id,
        Unit.of_turn(robot),
        anchor=user.turn_id,
        evidence=[
            evidence_of(user, "words of the person", user.word_count),
            evidence_of(robot, "nearness of the reply", match.nearness, match.threshold),
        ],
        rationale=rationale,
    )
