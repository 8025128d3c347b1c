"""What the robot is said not to have done, while somebody spoke who may have been the robot."""

from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Finding

# The cues that find something missing, or late, in what the robot says.
OMISSIONS = frozenset({"no_response", "response_delay", "no_greeting", "no_goodbye", "no_apology"})
# And those that find its silence well placed: all rest on its saying nothing.
OMISSION_CUES = OMISSIONS | {"waits_for_end"}
# How long before such an omission begins an unknown voice still bears on it: it may be what is to be answered.
_BEFORE_NS = 1 * NS_PER_S
# A late answer was the robot's own, by a voice that was known: who was answered cannot have been the robot as well.
_ANSWERED = "response_delay"


def robot_may_have_spoken(finding: Finding, scene: Scene) -> bool:
    """Whether a voice that nobody could tell apart leaves open that the robot did what it is said to have omitted."""
    from_ns = finding.onset_ns + 1 if finding.cue_id == _ANSWERED else finding.onset_ns - _BEFORE_NS
    return finding.cue_id in OMISSIONS and any(
        turn.speaker is Speaker.UNKNOWN and turn.end_ns >= from_ns for turn in scene.turns
    )
