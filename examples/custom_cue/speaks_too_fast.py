"""A cue of your own: the robot speaks too fast.

A cue decides by its arguments alone, so that the same input gives the same flags.
"""

from collections.abc import Iterator

from norm_core import Attribute, Polarity, ns_to_s
from norm_monitor import Cue, CustomCue, Finding, Scene, Threshold, ThresholdTable, Unit, WordMatcher, evidence_of


def find_fast_turns(scene: Scene, table: ThresholdTable, matcher: WordMatcher) -> Iterator[Finding]:
    """Compare the rate of each finished turn of the robot with the threshold."""
    cue = table.cues["speaks_too_fast"]
    for turn in scene.recent:
        if not turn.is_robot or turn.ongoing or turn.word_count < cue.value("words"):
            continue
        rate = turn.word_count / ns_to_s(turn.end_ns - turn.start_ns)
        if rate >= cue.value("rate"):
            yield table.finding(
                "speaks_too_fast",  # the name of the entry point
                Unit.of_turn(turn),  # what a coder would label
                evidence=[evidence_of(turn, "speech rate", rate, cue.value("rate"), "words/s")],
                rationale=f"The robot spoke {turn.word_count} words at {rate:.1f} words a second.",
            )


SPEAKS_TOO_FAST = CustomCue(
    find=find_fast_turns,
    entry=Cue(
        finds="the robot speaks faster than people can follow with ease",
        polarity=Polarity.ERROR,
        attributes=(Attribute.CONVERSATIONAL_MECHANICS,),
        probability=0.7,
        correction="Speak more slowly, and pause between sentences.",
        thresholds={
            "rate": Threshold(value=3.5, unit="words/s", evidence="default", source="people speak at 2 to 3 words/s"),
            "words": Threshold(value=6, unit="words", evidence="default", source="a shorter turn gives no steady rate"),
        },
    ),
)
