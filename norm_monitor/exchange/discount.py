"""What a cue takes a turn of the robot's for, where the turn amid what was said around it reads otherwise."""

from dataclasses import replace

from norm_monitor.context.exchange_context import exchange_context
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Finding
from norm_monitor.cues.threshold_table import ThresholdTable

# The most that a doubted finding is probable: by the usual floor it raises nothing, and is still shown to the judge.
DOUBTED = 0.4


def discount_confidence(finding: Finding, scene: Scene, table: ThresholdTable, meaning: Meaning) -> Finding:
    """The finding; less probable where the turn that it begins in reads so with less than the cue's discount_below."""
    least = table.cues[finding.cue_id].discount_below
    said = (turn for turn in scene.robot_turns if turn.start_ns <= finding.onset_ns <= turn.end_ns)
    robot = next((turn for turn in said if turn.text.strip()), None)
    if not least or robot is None:
        return finding
    reads_so = meaning.read(exchange_context(scene, robot).exchange).probability[finding.polarity]
    return finding if reads_so >= least else replace(finding, probability=min(finding.probability, DOUBTED))
