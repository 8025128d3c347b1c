"""Add a cue of your own to the shipped ones: the robot speaks too fast.

eval "$(./tactful env)" && python examples/custom_cue.py

A cue is a function of a scene, the threshold table and the sentence meanings. It yields what it finds, and decides by
its arguments alone: the same input gives the same flags. Its numbers are in the table, which a flag's hash covers.
"""

import sys
from collections.abc import Iterator

from norm_core import Attribute, Polarity, ReplayClock, Speaker, Utterance, ns_to_s, s_to_ns
from norm_monitor import (
    Cue,
    EncoderMatcher,
    Finding,
    Monitor,
    MonitorConfig,
    Scene,
    Threshold,
    ThresholdTable,
    Unit,
    WordMatcher,
    evidence_of,
)

SPEAKS_TOO_FAST = Cue(
    finds="the robot speaks faster than people follow with ease",
    polarity=Polarity.ERROR,
    attributes=(Attribute.CONVERSATIONAL_MECHANICS,),
    probability=0.7,
    correction="Speak more slowly, and pause between sentences.",
    thresholds={
        "rate": Threshold(value=3.5, unit="words/s", evidence="default", source="people speak at 2 to 3 words/s"),
        "words": Threshold(value=6, unit="words", evidence="default", source="a shorter turn gives no steady rate"),
    },
)

TALK = (
    (Speaker.USER, 0.0, 2.0, "Where can I buy a ticket?"),
    (Speaker.ROBOT, 2.5, 5.0, "You can buy it at the counter behind the stairs on your left before noon."),
    (Speaker.USER, 6.0, 7.5, "And where is the café?"),
    (Speaker.ROBOT, 8.0, 11.5, "The café is on the second floor."),
)


def speaks_too_fast(scene: Scene, table: ThresholdTable, meaning: WordMatcher) -> Iterator[Finding]:
    """Compare the rate of each finished turn of the robot with the threshold."""
    cue = table.cues["speaks_too_fast"]
    for turn in scene.recent:
        if not turn.is_robot or turn.ongoing or turn.word_count < cue.value("words"):
            continue
        rate = turn.word_count / ns_to_s(turn.end_ns - turn.start_ns)
        if rate >= cue.value("rate"):
            yield table.finding(
                "speaks_too_fast",
                Unit.of_turn(turn),  # what a coder would mark
                evidence=[evidence_of(turn, "speech rate", rate, cue.value("rate"), "words/s")],
                rationale=f"The robot spoke {turn.word_count} words at {rate:.1f} words a second.",
            )


def main() -> int:
    """Print the flags of a short talk that the custom cue reads."""
    table = ThresholdTable.shipped().with_cues({"speaks_too_fast": SPEAKS_TOO_FAST})
    config = MonitorConfig.for_replay(["utterances"])
    monitor = Monitor(config, table, EncoderMatcher.shipped(), ReplayClock(), cues=[speaks_too_fast])
    flags = []
    for number, (speaker, start_s, end_s, text) in enumerate(TALK, start=1):
        start_ns, end_ns = s_to_ns(start_s), s_to_ns(end_s)
        line = f"line_{number}"
        flags += monitor.take(
            Utterance(
                stamp_ns=start_ns, utterance_id=line, speaker=speaker, text=text, start_ns=start_ns, end_ns=end_ns
            )
        )
    flags += monitor.end_input()
    for flag in {flag.event_id: flag for flag in flags}.values():
        print(f"{ns_to_s(flag.onset_ns):.1f} s  {flag.polarity}  {flag.cue_id}: {flag.rationale}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
