"""Requests of a person about the robot's conduct: stop, wait, answer."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_monitor.context.meaning import Match, Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_filler, is_question, question_in
from norm_monitor.cues.finding import Findings, LookAgain, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def stopping(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """After a request to stop or wait, the robot stops, talks on, or soon resumes the same topic."""
    cue = table.cues["ignores_stop"]
    on_ns, resumes_ns = s_to_ns(cue.value("talks_on_s")), s_to_ns(cue.value("resumes_s"))
    for user in scene.recent:
        if user.is_robot or user.word_count > 8 or not (match := meaning.match(user.text, "stop")):
            continue
        interrupted = next((r for r in scene.robot_turns if r.start_ns < user.start_ns <= r.end_ns), None)
        if interrupted is None:
            continue  # the robot was silent: "turn the heating off" is another request
        talked_on_ns = interrupted.active_ns(user.end_ns, interrupted.end_ns)
        following = scene.next_robot_turn(user)
        if talked_on_ns > on_ns:
            what = f"talked on for {ns_to_s(talked_on_ns):.1f} s"
            yield _ignored(table, user, interrupted, ns_to_s(talked_on_ns), match, what)
        elif (
            following
            and following.start_ns - user.end_ns < resumes_ns
            and _resumes(following, interrupted, user, match, meaning)
        ):
            on_s = ns_to_s(following.end_ns - user.end_ns)
            yield _ignored(table, user, following, on_s, match, "soon went on with the same")
        elif scene.end_ns < user.end_ns + resumes_ns:
            yield LookAgain(at_ns=user.end_ns + resumes_ns)
        else:
            yield table.finding(
                "stops_when_asked",
                Unit.of_turn(user),
                evidence=[evidence_of(user, "nearness to a request to stop", match.nearness, match.threshold)],
                rationale=f"Asked {quote(user)}, the robot stopped.",
            )


def _resumes(following: Turn, interrupted: Turn, user: Turn, match: Match, meaning: Meaning) -> bool:
    """Whether the robot resumes its topic without an apology or an answer to the person."""
    return (
        following.word_count > 8
        and not (is_question(user.text) and not is_question(match.sentence))
        and not meaning.match(following.text, "apology")
        and meaning.similarity(following.text, interrupted.text) > meaning.similarity(following.text, user.text)
    )


def waiting(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person announces their return; the robot waits, or does not. A robot that never spoke does not wait."""
    silence_ns = s_to_ns(table.cues["waits_for_return"].value("silence_s"))
    talks_s = table.cues["does_not_wait"].value("talks_s")
    for user in scene.recent:
        if user.is_robot or not (match := meaning.match(user.text, "be_right_back")):
            continue
        until_ns = user.end_ns + 3 * silence_ns
        said_since = [r for r in scene.robot_turns if user.end_ns <= r.start_ns < until_ns]
        back = next((u for u in scene.user_turns if u.start_ns > user.end_ns), None)
        before_return = [r for r in said_since if back is None or r.start_ns < back.start_ns]
        spoken_s = sum(ns_to_s(r.end_ns - r.start_ns) for r in before_return)
        if spoken_s > talks_s:
            yield table.finding(
                "does_not_wait",
                Unit.of_turn(before_return[0]),
                anchor=user.turn_id,
                evidence=[evidence_of(user, "robot talked meanwhile", spoken_s, talks_s, "s")],
                rationale=f"The person said {quote(user)}, and the robot did not wait.",
            )
        elif scene.end_ns < until_ns and back is None:
            yield LookAgain(at_ns=until_ns)
        elif scene.robot_turns and (back.start_ns if back else until_ns) - user.end_ns >= silence_ns:
            yield table.finding(
                "waits_for_return",
                Unit.of_silence(user, back.start_ns if back else until_ns),
                evidence=[evidence_of(user, "nearness to “back in a moment”", match.nearness, match.threshold)],
                rationale=f"The person said {quote(user)}, and the robot waited.",
            )


def answering(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A question gets an unrelated reply."""
    least = table.cues["question_unanswered"].value("similarity")
    for user in scene.recent:
        if user.is_robot or not (question := question_in(user.text)):
            continue
        robot, following = scene.next_robot_turn(user), scene.next_user_turn(user)
        if robot is None or robot.ongoing or robot.word_count < 4 or is_filler(robot.text):
            continue
        if following and following.start_ns < robot.start_ns:
            continue
        similarity = meaning.similarity(question, robot.text)
        excused = any(
            meaning.match(robot.text, c) for c in ("clarification", "unknowing", "apology", "check_in", "sympathy")
        )
        if similarity < least and not excused:
            yield table.finding(
                "question_unanswered",
                Unit.of_turn(robot),
                anchor=user.turn_id,
                evidence=[
                    evidence_of(user, "the question", user.word_count),
                    evidence_of(robot, "similarity of the reply", similarity, least),
                ],
                rationale=f"The person asked {quote(user)}, and the robot's reply seems to be about something else.",
            )


def _ignored(table: ThresholdTable, user: Turn, robot: Turn, on_s: float, match: Match, what: str) -> Findings:  # noqa: PLR0917
    return table.finding(
        "ignores_stop",
        Unit.of_turn(user),
        evidence=[
            evidence_of(user, "nearness to a request to stop", match.nearness, match.threshold),
            evidence_of(robot, "robot talks on for", on_s, table.cues["ignores_stop"].value("talks_on_s"), "s"),
        ],
        rationale=f"The person said {quote(user)}, and the robot {what}.",
    )
