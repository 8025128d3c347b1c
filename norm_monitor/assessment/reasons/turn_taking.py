"""Turn-taking: the robot interrupts, leaves time, talks on after "stop", repeats itself, or talks for long."""

import re
from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.assessment.finding import Findings, evidence_of, quote, quote_end
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
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
    locale_of,
    tokens,
)

_TAIL_NS = NS_PER_S // 2
_THINKING = re.compile(r"\blet me (see|think|look)\b|让我(想|看)")
_NEVER_LAST = frozenset({"a", "an", "the", "and", "because", "my", "your", "our", "their", "of", "um", "uh"})


def robot_cuts_in(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot starts while a person speaks, or in a pause within their turn."""
    cue = table.cues["robot_cuts_in"]
    active_ns, on_ns, resumes_ns, pause_ns = (
        s_to_ns(cue.value(name)) for name in ("voice_active_s", "talks_on_s", "resumes_s", "pause_s")
    )
    for robot in scene.recent:
        if not robot.is_robot or is_backchannel(robot.text) or is_filler(robot.text) or is_warning(robot.text):
            continue
        for begin_ns, _ in robot.spans:
            user = (
                _interrupted_speaker(scene, begin_ns, active_ns, on_ns)
                or _pausing_speaker(scene, begin_ns, resumes_ns)
                or _unfinished_speaker(scene, begin_ns, pause_ns)
            )
            if user is None:
                continue
            overlap_s = ns_to_s(user.overlap_ns(robot))
            yield table.finding(
                "robot_cuts_in",
                Unit.of_turn(robot),
                anchor=user.turn_id,
                evidence=[
                    evidence_of(user, "both voices at once", overlap_s, cue.value("talks_on_s"), "s"),
                    evidence_of(robot, "words of the robot", robot.word_count, None, "words"),
                ],
                rationale=f"The robot began to speak before the person had finished {quote_end(user)}.",
            )
            break


def waits_for_end(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person pauses mid-turn and the robot waits; the cue notes a long pause.

    Silence alone is no waiting: the robot speaks afterwards, and it spoke before or the words hold the turn.
    """
    cue = table.cues["waits_for_end"]
    least_ns, long_ns, most_ns = (s_to_ns(cue.value(name)) for name in ("pause_s", "long_s", "most_s"))
    for before, turn in zip(scene.turns, scene.turns[1:], strict=False):
        if before.is_robot or turn.is_robot or not (before.timed and turn.timed):
            continue
        pause_ns = turn.start_ns - before.end_ns
        if any(robot.active_ns(before.end_ns, turn.start_ns) for robot in scene.robot_turns):
            continue
        reply = scene.next_robot_turn(turn)
        if reply is None or reply.start_ns < scene.start_ns or not _listened(scene, before, reply, most_ns):
            continue
        is_long = long_ns <= pause_ns <= most_ns and not _is_over(before, matcher)
        if is_long or (least_ns <= pause_ns < long_ns and is_unfinished(before.text)):
            yield table.finding(
                "waits_for_end",
                Unit.of_turn(before),
                evidence=[evidence_of(before, "pause left to the person", ns_to_s(pause_ns), ns_to_s(least_ns), "s")],
                rationale=f"The person paused for {ns_to_s(pause_ns):.1f} s after {quote_end(before)}, "
                "and the robot let them go on.",
            )


def _listened(scene: Scene, before: Turn, reply: Turn, most_ns: int) -> bool:
    """Whether the robot takes part in the talk around a pause, and does not merely say nothing."""
    last = scene.user_turn_before(reply)
    holds = is_unfinished(before.text) or announces_pause(before.text)
    takes_up = last is not None and reply.start_ns - last.end_ns <= most_ns
    return takes_up and (holds or scene.robot_turn_before(before) is not None)


def _is_over(turn: Turn, matcher: TextMatcher) -> bool:
    """Whether the turn yields to the robot or to nobody: then the robot's silence is not waiting."""
    asks = is_question(turn.text) and not is_unfinished(turn.text)
    return asks or any(matcher.match(turn.text, c) for c in ("greeting", "farewell", "thanks"))


def _interrupted_speaker(scene: Scene, begin_ns: int, active_ns: int, on_ns: int) -> Turn | None:
    """Return the person whose voice was active before `begin_ns` and well after it."""
    for user in scene.user_turns:
        claims = user.timed and not is_backchannel(user.text)
        if claims and any(s <= begin_ns - active_ns and e >= begin_ns + on_ns for s, e in user.spans):
            return user
    return None


def _pausing_speaker(scene: Scene, begin_ns: int, resumes_ns: int) -> Turn | None:
    """Return the person who had paused mid-sentence and continued as the robot started."""
    for before, user in zip(scene.user_turns, scene.user_turns[1:], strict=False):
        claims = before.timed and user.timed and is_unfinished(before.text) and not is_backchannel(user.text)
        if claims and before.end_ns <= begin_ns < user.start_ns <= begin_ns + resumes_ns:
            return user
    return None


def _unfinished_speaker(scene: Scene, begin_ns: int, pause_ns: int) -> Turn | None:
    """Return the person whose last words before `begin_ns` are unfinished or ask for time to think."""
    before = next((user for user in reversed(scene.user_turns) if user.start_ns < begin_ns), None)
    just = before and before.timed and -_TAIL_NS <= begin_ns - before.end_ns <= pause_ns
    return before if before and just and _wants_more_time(before.text) else None


def _wants_more_time(text: str) -> bool:
    words = tokens(text)
    if not words or text.rstrip().endswith(("?", "？")):
        return False
    return words[-1] in _NEVER_LAST or _THINKING.search(" ".join(words[-5:])) is not None


# A longer turn asks for more than to stop.
_MOST_WORDS = 8


def stopping(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person says "stop" into the robot's turn, and the robot talks on."""
    cue = table.cues["ignores_stop"]
    longest_s = cue.value("talks_on_s")
    for user in scene.recent:
        if user.is_robot or user.word_count > _MOST_WORDS or not (match := matcher.match(user.text, "stop")):
            continue
        robot = next(
            (
                robot_turn
                for robot_turn in scene.robot_turns
                if robot_turn.start_ns < user.start_ns <= robot_turn.end_ns
            ),
            None,
        )
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


def robot_repeats(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot repeats one of its last turns without a request."""
    cue = table.cues["robot_repeats"]
    for index, turn in enumerate(scene.robot_turns):
        if turn.end_ns < scene.start_ns or turn.word_count < cue.value("words"):
            continue
        for earlier in reversed(scene.robot_turns[max(0, index - int(cue.value("turns"))) : index]):
            similarity = matcher.similarity(earlier.text, turn.text)
            between = [u for u in scene.user_turns if earlier.start_ns < u.start_ns < turn.start_ns]
            if similarity >= cue.value("similarity") and not (between and _asked_again(matcher, between[-1].text)):
                ago_s = ns_to_s(turn.start_ns - earlier.start_ns)
                yield table.finding(
                    "robot_repeats",
                    Unit.of_turn(turn),
                    evidence=[evidence_of(turn, "similarity to an earlier turn", similarity, cue.value("similarity"))],
                    rationale=f"The robot said nearly the same {ago_s:.0f} s before: {quote(turn)}.",
                )
                break


def monologue(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot talks for long without a pause for others."""
    cue = table.cues["monologue"]
    for turn in scene.recent:
        if not turn.is_robot:
            continue
        length_s, words = ns_to_s(turn.end_ns - turn.start_ns), turn.word_count
        most_s, most_words = cue.value("length_s", locale_of(turn.text)), cue.value("words", locale_of(turn.text))
        if length_s >= most_s or (words >= most_words and not turn.ongoing):
            much = f"for {length_s:.1f} s" if length_s >= most_s else f"{words} words"
            yield table.finding(
                "monologue",
                Unit.of_turn(turn),
                evidence=[
                    evidence_of(turn, "length of the turn", length_s, most_s, "s"),
                    evidence_of(turn, "words of the turn", words, most_words, "words"),
                ],
                rationale=f"The robot spoke {much} without a pause for the person.",
            )


def _asked_again(matcher: TextMatcher, text: str) -> bool:
    """Whether somebody asks to hear something once more."""
    return asks_to_repeat(text) or bool(matcher.match(text, "repair_request"))
