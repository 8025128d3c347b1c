"""Repetition by the robot or by an unheard person, and monologues."""

from collections.abc import Iterator

from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.set_phrases import asks_to_repeat
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import locale_of
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit


def robot_repeats(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot repeats one of its last turns without a request."""
    cue = table.cues["robot_repeats"]
    for index, turn in enumerate(scene.robot_turns):
        if turn.end_ns < scene.start_ns or turn.word_count < cue.value("words"):
            continue
        for earlier in reversed(scene.robot_turns[max(0, index - int(cue.value("turns"))) : index]):
            similarity = meaning.similarity(earlier.text, turn.text)
            between = [u for u in scene.user_turns if earlier.start_ns < u.start_ns < turn.start_ns]
            if similarity >= cue.value("similarity") and not (between and asked_again(meaning, between[-1].text)):
                ago_s = ns_to_s(turn.start_ns - earlier.start_ns)
                yield table.finding(
                    "robot_repeats",
                    Unit.of_turn(turn),
                    evidence=[evidence_of(turn, "similarity to an earlier turn", similarity, cue.value("similarity"))],
                    rationale=f"The robot said nearly the same {ago_s:.0f} s before: {quote(turn)}.",
                )
                break


def user_repeats(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """A person repeats themselves shortly after, because the robot did not react."""
    cue = table.cues["user_repeats"]
    within_ns = s_to_ns(cue.value("within_s"))
    for index, turn in enumerate(scene.user_turns):
        if turn.end_ns < scene.start_ns or turn.word_count < cue.value("words"):
            continue
        for earlier in reversed(scene.user_turns[:index]):
            if turn.start_ns - earlier.end_ns > within_ns or earlier.word_count < cue.value("words"):
                break
            if earlier.end_ns > turn.start_ns or _is_for_somebody_else(scene, meaning, earlier, turn):
                continue  # two people
            similarity = meaning.similarity(earlier.text, turn.text)
            if similarity >= cue.value("similarity"):
                ago_s = ns_to_s(turn.start_ns - earlier.end_ns)
                missed = next((r for r in scene.robot_turns if earlier.end_ns <= r.start_ns < turn.start_ns), None)
                yield table.finding(
                    "user_repeats",
                    Unit.of_turn(missed) if missed else Unit.of_silence(earlier, turn.start_ns),
                    anchor=turn.turn_id,
                    evidence=[evidence_of(turn, "similarity to an earlier turn", similarity, cue.value("similarity"))],
                    rationale=f"The person had to say {quote(turn)} again {ago_s:.0f} s later.",
                )
                break


def asked_again(meaning: Meaning, text: str) -> bool:
    """Whether somebody asks to hear something once more."""
    return asks_to_repeat(text) or bool(meaning.match(text, "repair_request"))


def _is_for_somebody_else(scene: Scene, meaning: Meaning, earlier: Turn, later: Turn) -> bool:
    """Whether another person said the same, or another person asked for it."""
    if earlier.speaker_id and later.speaker_id and earlier.speaker_id != later.speaker_id:
        return True
    between = [turn for turn in scene.turns if earlier.end_ns <= turn.start_ns < later.start_ns]
    return bool(between) and not between[-1].is_robot and asked_again(meaning, between[-1].text)


def monologue(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot talks for long without a pause for others."""
    cue = table.cues["monologue"]
    for turn in scene.recent:
        if not turn.is_robot:
            continue
        length_s, words = ns_to_s(turn.end_ns - turn.start_ns), turn.word_count
        most_s, most_words = cue.value("length_s", locale_of(turn.text)), cue.value("words", locale_of(turn.text))
        if length_s >= most_s or (words >= most_words and not turn.ongoing):
            yield table.finding(
                "monologue",
                Unit.of_turn(turn),
                evidence=[
                    evidence_of(turn, "length of the turn", length_s, most_s, "s"),
                    evidence_of(turn, "words of the turn", words, most_words, "words"),
                ],
                rationale=f"The robot talked for {length_s:.0f} s and {words} words without a pause for the person.",
            )
