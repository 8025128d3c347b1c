"""The robot's response time, and missing responses."""

from collections.abc import Iterator

from norm_core.records.presence import PresenceState
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.assessment.finding import Findings, RequestWindowAt, evidence_of, quote_end
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import (
    announces_pause,
    has_open_question,
    is_backchannel,
    is_filler,
    is_question,
    is_request,
    is_unfinished,
)

# Concepts of turns that call for no answer, unless they ask as well.
_CLOSING = ("farewell", "thanks", "stop", "be_right_back")
# The fewest words of a statement that opens an exchange, and of an answer to the robot's question.
STATEMENT_WORDS, ANSWER_WORDS = 5, 2
# A turn within this time of the one before belongs to the same exchange.
_JUST_NS = 5 * NS_PER_S


def answer_in_time(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """Late and missing answers to what a person said to the robot."""
    for turn in scene.user_turns:
        if not turn.timed or turn.ongoing:
            continue
        reply = next((robot for robot in scene.robot_turns if robot.start_ns >= turn.end_ns), None)
        # A long silence outlasts the window, and its last finding must state its whole length.
        ends_ns = (turn.end_ns, reply.start_ns if reply else 0, _silence_end_ns(turn, reply, scene))
        is_recent = max(ends_ns) >= scene.start_ns
        if is_recent and _may_be_answered(turn, scene, matcher):
            yield from _answer(turn, reply, scene, table, matcher)


def _may_be_answered(turn: Turn, scene: Scene, matcher: TextMatcher) -> bool:
    """Whether a person would notice silence after the turn.

    Not after a backchannel, thanks, "stop", a farewell or an unfinished sentence, nor if the person goes on within a
    second or spoke over the robot.
    """
    following = scene.next_user_turn(turn)
    goes_on = following is not None and following.start_ns - turn.end_ns < NS_PER_S
    over_robot = any(robot.active_ns(turn.end_ns, turn.end_ns + 1) for robot in scene.robot_turns)
    if goes_on or over_robot or is_backchannel(turn.text) or is_unfinished(turn.text):
        return False
    return is_question(turn.text) or not any(matcher.match(turn.text, concept) for concept in _CLOSING)


def _answer(
    turn: Turn, reply: Turn | None, scene: Scene, table: ThresholdTable, matcher: TextMatcher
) -> Iterator[Findings]:
    until_ns = _silence_end_ns(turn, reply, scene)
    next_user = next((u for u in scene.user_turns if turn.end_ns <= u.start_ns == until_ns), None)
    silence_s = ns_to_s(until_ns - turn.end_ns)
    expects = has_open_question(turn.text) or _greets(turn, scene, matcher)
    cue = table.cues["no_response"]
    longest_s = cue.value("silence_s" if expects else "after_statement_s")
    late_s = table.cues["response_delay"].value("delay_s" if expects else "after_statement_s")
    owed = expects or _calls_for_answer(turn, scene, matcher)
    if owed and silence_s >= longest_s:
        yield _no_response(turn, until_ns if reply or next_user else None, silence_s, longest_s, table)
    elif expects and next_user and silence_s >= late_s and _asks_again(turn, next_user, scene, matcher):
        answered_ns = reply.start_ns if reply else None
        whole_s = ns_to_s((answered_ns or scene.end_ns) - turn.end_ns)
        yield _no_response(turn, answered_ns, whole_s, late_s, table)
    elif reply is None or next_user:
        if owed and next_user is None:
            yield RequestWindowAt(at_ns=turn.end_ns + s_to_ns(longest_s))
    elif silence_s >= late_s and not is_filler(reply.text) and (owed or not _left_before(scene, turn, reply)):
        yield table.finding(
            "response_delay",
            Unit.of_silence(turn, reply.start_ns),
            severity=table.cues["response_delay"].severity_of("delay_s", silence_s),
            evidence=[evidence_of(turn, "silence before the answer", silence_s, late_s, "s")],
            rationale=f"After {quote_end(turn)} the robot was silent for {silence_s:.1f} s before it answered.",
        )


def _left_before(scene: Scene, turn: Turn, reply: Turn) -> bool:
    """Whether somebody was seen to leave, or was seen no more, between a turn and the robot's next: it answers none."""
    gone = (PresenceState.LEFT, PresenceState.ABSENT)
    return any(
        turn.end_ns < presence.stamp_ns <= reply.start_ns and presence.state in gone for presence in scene.presences
    )


def _silence_end_ns(turn: Turn, reply: Turn | None, scene: Scene) -> int:
    """Return when anybody speaks after the turn, or until when nobody did."""
    silent_until_ns = reply.start_ns if reply else scene.end_ns
    return next((u.start_ns for u in scene.user_turns if turn.end_ns <= u.start_ns < silent_until_ns), silent_until_ns)


def _calls_for_answer(turn: Turn, scene: Scene, matcher: TextMatcher) -> bool:
    """Whether the words call for an act or an answer without a question.

    They request something, answer the robot's question, or open a new exchange with a robot that has spoken. After an
    offer of the robot's, or the announcement of an act, it may be acting. Otherwise a talk may rest at a statement.
    """
    if scene.other_language or announces_pause(turn.text):
        return False
    if is_request(turn.text):
        return True
    before = max((t for t in scene.turns if t.start_ns < turn.start_ns), key=lambda t: t.end_ns, default=None)
    if before is None or any(u.speaker_id != turn.speaker_id for u in scene.user_turns):  # it may be for them
        return False
    if turn.start_ns - before.end_ns > _JUST_NS:
        return turn.word_count >= STATEMENT_WORDS and _robot_has_spoken(scene, turn)
    acts = announces_pause(before.text) or bool(matcher.match(before.text, "offering"))
    return before.is_robot and is_question(before.text) and not acts and turn.word_count >= ANSWER_WORDS


def _greets(turn: Turn, scene: Scene, matcher: TextMatcher) -> bool:
    return bool(matcher.match(turn.text, "greeting")) and not _robot_has_spoken(scene, turn)


def _asks_again(turn: Turn, later: Turn, scene: Scene, matcher: TextMatcher) -> bool:
    """Whether a person without an answer asks, or greets, again."""
    once_more = later.timed and later.speaker_id == turn.speaker_id
    return once_more and (has_open_question(later.text) or _greets(later, scene, matcher))


def _robot_has_spoken(scene: Scene, turn: Turn) -> bool:
    """Whether the robot has spoken before: otherwise a greeting may be for somebody else."""
    return any(robot.end_ns < turn.start_ns for robot in scene.robot_turns)


def _no_response(
    turn: Turn, offset_ns: int | None, silence_s: float, longest_s: float, table: ThresholdTable
) -> Findings:
    cue = table.cues["no_response"]
    return table.finding(
        "no_response",
        Unit.of_silence(turn, offset_ns),
        severity=cue.severity_of("silence_s", silence_s),
        evidence=[evidence_of(turn, "silence after the turn", silence_s, longest_s, "s")],
        rationale=f"The person said {quote_end(turn)}, and the robot said nothing for {silence_s:.1f} s.",
    )
