"""Lower a cue's confidence if the exchange classifier disagrees about the turn."""

from dataclasses import replace

from norm_monitor.context.exchange_context import exchange_context
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Finding
from norm_monitor.cues.threshold_table import ThresholdTable

# The upper bound of a discounted probability: below the default floor for flags, but the judge still sees it.
DISCOUNTED_AT_MOST = 0.4


def discount_confidence(finding: Finding, scene: Scene, table: ThresholdTable, meaning: Meaning) -> Finding:
    """Cap the probability of a finding that the exchange classifier contradicts.

    The classifier reads the robot's turn at the onset. If it gives the finding's polarity less than the cue's
    `discount_below`, the finding is capped at DISCOUNTED. A finding with its onset in silence stays as it is,
    and so does one in a language that the classifier does not read.
    """
    threshold = table.cues[finding.cue_id].discount_below
    turns_at_onset = (turn for turn in scene.robot_turns if turn.start_ns <= finding.onset_ns <= turn.end_ns)
    robot = next((turn for turn in turns_at_onset if turn.text.strip()), None)
    if not threshold or robot is None or scene.other_language:
        return finding
    agreement = meaning.read(exchange_context(scene, robot).exchange).probability[finding.polarity]
    return (
        finding
        if agreement >= threshold
        else replace(finding, probability=min(finding.probability, DISCOUNTED_AT_MOST))
    )
