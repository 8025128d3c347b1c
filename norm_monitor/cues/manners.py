"""The robot's words to and about people: secrets of others, good wishes, comfort, offers, encouragement."""

from collections.abc import Iterator

from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings, evidence_of, quote_about
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

_SAID = {
    "disclosure": ("discloses", "The robot said {words}, which reads as telling something private about somebody."),
    "well_wish": ("wishes_well", "The robot said {words}, which reads as wishing the person well."),
    "reassuring": ("reassures", "The robot said {words}, which reads as putting the person at ease."),
    "offering": ("offers_help", "The robot said {words}, which reads as an offer of help."),
    "praise": ("encourages", "The robot said {words}, which reads as praise or encouragement."),
}


def manners(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reveals a secret, or says something kind to a person."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        for concept, (cue_id, note) in _SAID.items():
            if match := matcher.match(robot.text, concept):
                measure = f"nearness to {concept.replace('_', ' ')}"
                yield table.finding(
                    cue_id,
                    Unit.of_turn(robot),
                    evidence=[evidence_of(robot, measure, match.nearness, match.threshold)],
                    rationale=note.format(words=quote_about(robot, match.sentence)),
                )
