"""Drop a finding about the robot's silence if an unidentified voice may have been the robot."""

from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.scene import Scene

# Cues that report a missing or late robot utterance.
OMISSIONS = frozenset({"no_response", "response_delay", "no_greeting", "no_apology"})
# All cues that rest on the robot's silence, including the one that approves of it.
OMISSION_CUES = OMISSIONS | {"waits_for_end"}
# All cues that compare the times of two sources.
TIMING_CUES = OMISSION_CUES | {
    "robot_cuts_in", "talks_over_user", "ignores_stop", "monologue", "ignores_looking_away", "ignores_leaving",
}  # fmt: skip
# How long before the omission an unidentified voice still matters: it may be the speech to answer.
_BEFORE_NS = 1 * NS_PER_S
# A late answer came from the robot itself, so that the voice before it was another's.
_ANSWERED = "response_delay"


def robot_may_have_broken(unit: Unit, scene: Scene) -> bool:
    """Whether an unidentified voice within or after a unit may have been the robot's."""
    from_ns = unit.onset_ns - _BEFORE_NS
    return any(turn.speaker is Speaker.UNKNOWN and turn.end_ns >= from_ns for turn in scene.turns)


def robot_may_have_spoken(finding: Finding, scene: Scene) -> bool:
    """Whether an unidentified voice may have broken the silence of the robot that the finding reports."""
    from_ns = finding.onset_ns + 1 if finding.cue_id == _ANSWERED else finding.onset_ns - _BEFORE_NS
    return finding.cue_id in OMISSION_CUES and any(
        turn.speaker is Speaker.UNKNOWN and turn.end_ns >= from_ns for turn in scene.turns
    )
