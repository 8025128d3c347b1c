"""Lower a cue's confidence if the exchange classifier disagrees about the turn."""

from dataclasses import replace

from norm_monitor.context.exchange_context import exchange_context
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Finding
from norm_monitor.cues.threshold_table import ThresholdTable

# The upper bound of a discounted probability: below the default floor for flags, but the judge still sees it.
DISCOUNTED = 0.4


def discount_confidence(finding: Finding, scene: Scene, table: ThresholdTable, meaning: Meaning) -> Finding:
    """Return the finding, discounted if its turn's probability is below the cue's `discount_below`."""
    least = table.cues[finding.cue_id].discount_below
    said = (turn for turn in scene.robot_turns if turn.start_ns <= finding.onset_ns <= turn.end_ns)
    robot = next((turn for turn in said if turn.text.strip()), None)
    if not least or robot is None:
        return finding
    reads_so = meaning.read(exchange_context(scene, robot).exchange).probability[finding.polarity]
    return finding if reads_so >= least else replace(finding, probability=min(finding.probability, DISCOUNTED))
