"""Turn-taking: interruptions, time left, late answers, ignored requests to stop, repetitions and lectures."""

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

# Somebody who speaks for this long before the start of the robot, and goes on after it, is interrupted.
_MIN_SPEECH_BEFORE_NS = NS_PER_S // 5
# A shorter overlap after the start of the robot is the usual end of a turn.
_MIN_SPEECH_AFTER_S = 0.3
# Words that leave a sentence open hold the turn for this long.
_MAX_OPEN_GAP_NS = 3 * NS_PER_S // 2
# The robot may begin this long before the end of such words and still interrupt.
_MAX_OPEN_OVERLAP_NS = NS_PER_S // 2
# A person who goes on within this time after the start of the robot was interrupted in a pause.
_MAX_RESUME_GAP_NS = NS_PER_S // 2
_THINKING = re.compile(r"\blet me (see|think|look)\b|让我(想|看)")
# A shorter pause is open to anybody.
_MIN_PAUSE_S = 1.4
# A pause of this length is left to the person, whatever their words.
_MIN_LONG_PAUSE_S = 2.4
# After a longer pause the talk is over.
_MAX_PAUSE_S = 12.0
# A longer turn says more than to stop.
_MAX_STOP_WORDS = 8
# The voice of a robot takes this long to stop after a request.
_MAX_STOP_DELAY_S = 1.5
# From this cosine, two turns say the same.
_REPEAT_SIMILARITY = 0.85
# Number of earlier robot turns with which a turn is compared.
_MAX_TURNS_BACK = 3
# A shorter turn may be said again.
_MIN_REPEATED_WORDS = 4
# A turn of this length is a lecture; no source gives a number.
_MIN_LECTURE_S = 20.0
_MIN_LECTURE_WORDS = 60


def find_cut_in(moment: Moment) -> Iterator[Reason]:
    """Find a start of the robot while a person speaks, or in a pause within their turn."""
    robot = moment.turn
    if is_backchannel(robot.text) or is_filler(robot.text) or is_warning(robot.text):
        return
    for begin_ns, _ in robot.spans:
        if user := _find_interrupted_turn(moment.scene, begin_ns):
            yield moment.table.reason(
                "robot_cuts_in",
                [
                    evidence_of(user, "both voices at once", ns_to_s(user.overlap_ns(robot)), _MIN_SPEECH_AFTER_S, "s"),
                    evidence_of(robot, "words of the robot", robot.word_count, None, "words"),
                ],
                f"The robot began to speak before the person had finished {quote_end(user)}.",
            )
            return


def _find_interrupted_turn(scene: Scene, begin_ns: int) -> Turn | None:
    """Return the turn of a person that goes on after the robot starts, or whose last words leave more to come."""
    still_ns = begin_ns + int(_MIN_SPEECH_AFTER_S * NS_PER_S)
    for user in scene.user_turns:
        is_turn = user.timed and not is_backchannel(user.text)
        if is_turn and any(start <= begin_ns - _MIN_SPEECH_BEFORE_NS and end >= still_ns for start, end in user.spans):
            return user
    for before, user in pairwise(scene.user_turns):
        is_resumed = (
            before.end_ns <= begin_ns < user.start_ns <= begin_ns + _MAX_RESUME_GAP_NS and before.timed and user.timed
        )
        if is_resumed and is_unfinished(before.text) and not is_backchannel(user.text):
            return user
    last = next((user for user in reversed(scene.user_turns) if user.start_ns < begin_ns and user.timed), None)
    if last is None or not -_MAX_OPEN_OVERLAP_NS <= begin_ns - last.end_ns <= _MAX_OPEN_GAP_NS:
        return None
    is_thinking = _THINKING.search(" ".join(tokens(last.text)[-5:])) and not is_question(last.text)
    return last if is_thinking or is_unfinished(last.text) else None


def find_left_pause(moment: Moment) -> Iterator[Reason]:
    """Find a pause that the robot leaves to a person who then goes on.

    Silence alone is not waiting: the robot speaks afterwards, and it spoke before or the words hold the turn.
    """
    turn = moment.turn
    scene = moment.scene
    following = next((after for after in scene.turns if after.start_ns > turn.start_ns), None)
    if following is None or following.is_robot or not (turn.timed and following.timed):
        return
    pause_s = ns_to_s(following.start_ns - turn.end_ns)
    is_broken = any(robot.active_ns(turn.end_ns, following.start_ns) for robot in scene.robot_turns)
    reply = scene.next_robot_turn(following)
    if is_broken or reply is None or not _has_listened(scene, turn, reply):
        return
    is_long = _MIN_LONG_PAUSE_S <= pause_s <= _MAX_PAUSE_S and not _is_over(turn, moment.matcher)
    if is_long or (_MIN_PAUSE_S <= pause_s < _MIN_LONG_PAUSE_S and is_unfinished(turn.text)):
        yield moment.table.reason(
            "waits_for_end",
            [evidence_of(turn, "pause left to the person", pause_s, _MIN_PAUSE_S, "s")],
            f"The person paused for {pause_s:.1f} s after {quote_end(turn)}, and the robot let them go on.",
        )


def _has_listened(scene: Scene, turn: Turn, reply: Turn) -> bool:
    """Whether the robot takes part in the talk around a pause, rather than being silent all along."""
    last = scene.user_turn_before(reply)
    is_held = is_unfinished(turn.text) or announces_pause(turn.text)
    is_taken_up = last is not None and ns_to_s(reply.start_ns - last.end_ns) <= _MAX_PAUSE_S
    return is_taken_up and (is_held or scene.robot_turn_before(turn) is not None)


def _is_over(turn: Turn, matcher: TextMatcher) -> bool:
    """Whether the turn leaves the floor to others: then a silence of the robot is not waiting."""
    is_complete_question = is_question(turn.text) and not is_unfinished(turn.text)
    return is_complete_question or any(
        matcher.match(turn.text, concept) for concept in ("greeting", "farewell", "thanks")
    )


def find_late_answer(moment: Moment) -> Iterator[Reason]:
    """Find a silence of the robot after the turn of a person, or its late answer."""
    turn, scene, end_ns = moment.turn, moment.scene, moment.unit.offset_ns
    silence_s = ns_to_s((scene.end_ns if end_ns is None else end_ns) - moment.unit.onset_ns)
    missing = moment.table.cues["no_response"]
    late = moment.table.cues["response_delay"]
    threshold_s = missing.value("silence_s")
    if silence_s < threshold_s and any(robot.start_ns == end_ns for robot in scene.robot_turns):
        yield moment.table.reason(
            "response_delay",
            [evidence_of(turn, "silence before the answer", silence_s, late.value("delay_s"), "s")],
            f"After {quote_end(turn)} the robot was silent for {silence_s:.1f} s before it answered.",
            late.severity_of("delay_s", silence_s),
        )
    else:
        yield moment.table.reason(
            "no_response",
            [evidence_of(turn, "silence after the turn", silence_s, threshold_s, "s")],
            f"The person said {quote_end(turn)}, and the robot said nothing for {silence_s:.1f} s.",
            missing.severity_of("silence_s", silence_s),
        )


def find_ignored_stop(moment: Moment) -> Iterator[Reason]:
    """Find requests to stop within the turn, after which the robot talks on."""
    robot = moment.turn
    for user in moment.scene.user_turns:
        is_within = robot.start_ns < user.start_ns <= robot.end_ns and user.word_count <= _MAX_STOP_WORDS
        if not is_within or not (match := moment.matcher.match(user.text, "stop")):
            continue
        goes_on_s = ns_to_s(robot.active_ns(user.end_ns, robot.end_ns))
        if goes_on_s > _MAX_STOP_DELAY_S:
            yield moment.table.reason(
                "ignores_stop",
                [
                    evidence_of(user, "nearness to a request to stop", match.nearness, match.threshold),
                    evidence_of(robot, "robot talks on for", goes_on_s, _MAX_STOP_DELAY_S, "s"),
                ],
                f"The person said {quote(user)}, and the robot talked on for {goes_on_s:.1f} s.",
            )


def find_repetition(moment: Moment) -> Iterator[Reason]:
    """Find an earlier turn that the robot repeats without a request."""
    turn = moment.turn
    scene = moment.scene
    if turn.word_count < _MIN_REPEATED_WORDS:
        return
    before = [robot for robot in scene.robot_turns if robot.start_ns < turn.start_ns]
    for earlier in reversed(before[-_MAX_TURNS_BACK:]):
        similarity = moment.matcher.similarity(earlier.text, turn.text)
        between = [user for user in scene.user_turns if earlier.start_ns < user.start_ns < turn.start_ns]
        if similarity >= _REPEAT_SIMILARITY and not (between and _is_repeat_request(moment.matcher, between[-1].text)):
            ago_s = ns_to_s(turn.start_ns - earlier.start_ns)
            yield moment.table.reason(
                "robot_repeats",
                [evidence_of(turn, "similarity to an earlier turn", similarity, _REPEAT_SIMILARITY)],
                f"The robot said nearly the same {ago_s:.0f} s before: {quote(turn)}.",
            )
            return


def _is_repeat_request(matcher: TextMatcher, text: str) -> bool:
    """Whether somebody asks to hear something once more."""
    return asks_to_repeat(text) or bool(matcher.match(text, "repair_request"))


def find_lecture(moment: Moment) -> Iterator[Reason]:
    """Find a turn that is long and leaves no pause for others."""
    turn = moment.turn
    length_s, words = ns_to_s(turn.end_ns - turn.start_ns), turn.word_count
    if length_s >= _MIN_LECTURE_S or (words >= _MIN_LECTURE_WORDS and not turn.ongoing):
        much = f"for {length_s:.1f} s" if length_s >= _MIN_LECTURE_S else f"{words} words"
        yield moment.table.reason(
            "monologue",
            [
                evidence_of(turn, "length of the turn", length_s, _MIN_LECTURE_S, "s"),
                evidence_of(turn, "words of the turn", words, _MIN_LECTURE_WORDS, "words"),
            ],
            f"The robot spoke {much} without a pause for the person.",
        )
