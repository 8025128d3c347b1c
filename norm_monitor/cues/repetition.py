"""A robot that repeats itself, or talks for long."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.wording import asks_to_repeat, locale_of
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


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
