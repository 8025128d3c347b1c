"""Turn-taking: the robot interrupts, leaves time, answers late, talks on after "stop", repeats itself, or lectures."""

import re
from collections.abc import Iterator
from itertools import pairwise

from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.assessment.finding import Reason, evidence_of, quote, quote_end
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import (
    announces_pause,
    asks_to_repeat,
    is_backchannel,
    is_filler,
    is_question,
    is_unfinished,
    is_warning,
    tokens,
)

# Who speaks so long before the robot's start and so long after it is interrupted; a shorter overlap ends a turn.
_ACTIVE_NS, _ON_S = NS_PER_S // 5, 0.3
# So long after words that leave a sentence open, and so long before their end, the turn is still the person's; at any
# later time it is where they go on just as the robot starts.
_HELD_NS, _TAIL_NS, _RESUMES_NS = 3 * NS_PER_S // 2, NS_PER_S // 2, NS_PER_S // 2
_THINKING = re.compile(r"\blet me (see|think|look)\b|让我(想|看)")
# A shorter pause is left to anybody; one from the second on is left on purpose, and after the third it is over.
_PAUSE_S, _LONG_S, _MAX_S = 1.4, 2.4, 12.0
# A longer turn asks for more than to stop; the robot's voice takes some time to stop when it is told to.
_STOP_WORDS, _STOPS_S = 8, 1.5
# From which cosine two turns say the same, how many turns of the robot's back, and in how many words at least.
_SAME, _TURNS_BACK, _REPEATED_WORDS = 0.85, 3, 4
# From where on a turn is a lecture; no source gives a number.
_LECTURE_S, _LECTURE_WORDS = 20.0, 60


def cuts_in(moment: Moment) -> Iterator[Reason]:
    """The robot starts while a person speaks, or in a pause within their turn."""
    robot = moment.turn
    if is_backchannel(robot.text) or is_filler(robot.text) or is_warning(robot.text):
        return
    for begin_ns, _ in robot.spans:
        if user := _interrupted(moment.scene, begin_ns):
            yield moment.reason(
                "robot_cuts_in",
                [
                    evidence_of(user, "both voices at once", ns_to_s(user.overlap_ns(robot)), _ON_S, "s"),
                    evidence_of(robot, "words of the robot", robot.word_count, None, "words"),
                ],
                f"The robot began to speak before the person had finished {quote_end(user)}.",
            )
            return


def _interrupted(scene: Scene, begin_ns: int) -> Turn | None:
    """Return the person who speaks before and after a start of the robot's, or whose last words leave more to come."""
    on_ns = begin_ns + int(_ON_S * NS_PER_S)
    for user in scene.user_turns:
        claims = user.timed and not is_backchannel(user.text)
        if claims and any(start <= begin_ns - _ACTIVE_NS and end >= on_ns for start, end in user.spans):
            return user
    for before, user in pairwise(scene.user_turns):
        resumes = before.end_ns <= begin_ns < user.start_ns <= begin_ns + _RESUMES_NS and before.timed and user.timed
        if resumes and is_unfinished(before.text) and not is_backchannel(user.text):
            return user
    last = next((user for user in reversed(scene.user_turns) if user.start_ns < begin_ns and user.timed), None)
    if last is None or not -_TAIL_NS <= begin_ns - last.end_ns <= _HELD_NS:
        return None
    thinks = _THINKING.search(" ".join(tokens(last.text)[-5:])) and not is_question(last.text)
    return last if thinks or is_unfinished(last.text) else None


def waits_for_end(moment: Moment) -> Iterator[Reason]:
    """A person pauses and goes on, and the robot waits.

    Silence alone is no waiting: the robot speaks afterwards, and it spoke before or the words hold the turn.
    """
    turn, scene = moment.turn, moment.scene
    following = next((after for after in scene.turns if after.start_ns > turn.start_ns), None)
    if following is None or following.is_robot or not (turn.timed and following.timed):
        return
    pause_s = ns_to_s(following.start_ns - turn.end_ns)
    is_broken = any(robot.active_ns(turn.end_ns, following.start_ns) for robot in scene.robot_turns)
    reply = scene.next_robot_turn(following)
    if is_broken or reply is None or not _listened(scene, turn, reply):
        return
    is_long = _LONG_S <= pause_s <= _MAX_S and not _is_over(turn, moment.matcher)
    if is_long or (_PAUSE_S <= pause_s < _LONG_S and is_unfinished(turn.text)):
        yield moment.reason(
            "waits_for_end",
            [evidence_of(turn, "pause left to the person", pause_s, _PAUSE_S, "s")],
            f"The person paused for {pause_s:.1f} s after {quote_end(turn)}, and the robot let them go on.",
        )


def _listened(scene: Scene, turn: Turn, reply: Turn) -> bool:
    """Whether the robot takes part in the talk around a pause, and does not merely say nothing."""
    last = scene.user_turn_before(reply)
    holds = is_unfinished(turn.text) or announces_pause(turn.text)
    takes_up = last is not None and ns_to_s(reply.start_ns - last.end_ns) <= _MAX_S
    return takes_up and (holds or scene.robot_turn_before(turn) is not None)


def _is_over(turn: Turn, matcher: TextMatcher) -> bool:
    """Whether the turn yields to the robot or to nobody: then the robot's silence is not waiting."""
    asks = is_question(turn.text) and not is_unfinished(turn.text)
    return asks or any(matcher.match(turn.text, concept) for concept in ("greeting", "farewell", "thanks"))


def answers_late(moment: Moment) -> Iterator[Reason]:
    """The robot says nothing after a person's turn, or answers late."""
    turn, scene, end_ns = moment.turn, moment.scene, moment.unit.offset_ns
    silence_s = ns_to_s((scene.end_ns if end_ns is None else end_ns) - moment.unit.onset_ns)
    missing, late = moment.table.cues["no_response"], moment.table.cues["response_delay"]
    longest_s = missing.value("silence_s")
    if silence_s < longest_s and any(robot.start_ns == end_ns for robot in scene.robot_turns):
        yield moment.reason(
            "response_delay",
            [evidence_of(turn, "silence before the answer", silence_s, late.value("delay_s"), "s")],
            f"After {quote_end(turn)} the robot was silent for {silence_s:.1f} s before it answered.",
            late.severity_of("delay_s", silence_s),
        )
    else:
        yield moment.reason(
            "no_response",
            [evidence_of(turn, "silence after the turn", silence_s, longest_s, "s")],
            f"The person said {quote_end(turn)}, and the robot said nothing for {silence_s:.1f} s.",
            missing.severity_of("silence_s", silence_s),
        )


def ignores_stop(moment: Moment) -> Iterator[Reason]:
    """A person says "stop" into the robot's turn, and the robot talks on."""
    robot = moment.turn
    for user in moment.scene.user_turns:
        is_within = robot.start_ns < user.start_ns <= robot.end_ns and user.word_count <= _STOP_WORDS
        if not is_within or not (match := moment.matcher.match(user.text, "stop")):
            continue
        on_s = ns_to_s(robot.active_ns(user.end_ns, robot.end_ns))
        if on_s > _STOPS_S:
            yield moment.reason(
                "ignores_stop",
                [
                    evidence_of(user, "nearness to a request to stop", match.nearness, match.threshold),
                    evidence_of(robot, "robot talks on for", on_s, _STOPS_S, "s"),
                ],
                f"The person said {quote(user)}, and the robot talked on for {on_s:.1f} s.",
            )


def repeats(moment: Moment) -> Iterator[Reason]:
    """The robot repeats one of its last turns without a request."""
    turn, scene = moment.turn, moment.scene
    if turn.word_count < _REPEATED_WORDS:
        return
    before = [robot for robot in scene.robot_turns if robot.start_ns < turn.start_ns]
    for earlier in reversed(before[-_TURNS_BACK:]):
        similarity = moment.matcher.similarity(earlier.text, turn.text)
        between = [user for user in scene.user_turns if earlier.start_ns < user.start_ns < turn.start_ns]
        if similarity >= _SAME and not (between and _asks_again(moment.matcher, between[-1].text)):
            ago_s = ns_to_s(turn.start_ns - earlier.start_ns)
            yield moment.reason(
                "robot_repeats",
                [evidence_of(turn, "similarity to an earlier turn", similarity, _SAME)],
                f"The robot said nearly the same {ago_s:.0f} s before: {quote(turn)}.",
            )
            return


def _asks_again(matcher: TextMatcher, text: str) -> bool:
    """Whether somebody asks to hear something once more."""
    return asks_to_repeat(text) or bool(matcher.match(text, "repair_request"))


def lectures(moment: Moment) -> Iterator[Reason]:
    """The robot talks for long without a pause for others."""
    turn = moment.turn
    length_s, words = ns_to_s(turn.end_ns - turn.start_ns), turn.word_count
    if length_s >= _LECTURE_S or (words >= _LECTURE_WORDS and not turn.ongoing):
        much = f"for {length_s:.1f} s" if length_s >= _LECTURE_S else f"{words} words"
        yield moment.reason(
            "monologue",
            [
                evidence_of(turn, "length of the turn", length_s, _LECTURE_S, "s"),
                evidence_of(turn, "words of the turn", words, _LECTURE_WORDS, "words"),
            ],
            f"The robot spoke {much} without a pause for the person.",
        )
