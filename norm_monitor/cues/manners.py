"""The robot's words to and about people: rudeness, secrets of others, false identity, encouragement."""

from collections.abc import Iterator

from norm_monitor.context.meaning import Meaning
from norm_monitor.context.rudeness import rudeness
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Findings, evidence_of, quote
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.units.unit import Unit

_SAID = {
    "rude": ("rude", "The robot said {words}, which slights the person."),
    "disclosure": ("discloses", "The robot told of another person what is not its to tell: {words}."),
    "introduction": ("introduces_itself", "The robot said who it is and what it is there for: {words}."),
    "well_wish": ("wishes_well", "The robot wished the person well: {words}."),
    "adapting": ("adapts", "The robot adapted to what the person needs: {words}."),
    "reassuring": ("reassures", "The robot put the person at ease: {words}."),
    "offering": ("offers_help", "The robot offered what the person may need: {words}."),
    "praise": ("encourages", "The robot encouraged the person: {words}."),
}


def manners(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """The robot is rude, reveals a secret, misstates its identity or encourages a person."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        for concept, (cue_id, note) in _SAID.items():
            match = rudeness(meaning, robot.text) if concept == "rude" else meaning.match(robot.text, concept)
            if match:
                yield table.finding(
                    cue_id,
                    Unit.of_turn(robot),
                    evidence=[evidence_of(robot, f"nearness to {concept}", match.nearness, match.threshold)],
                    rationale=note.format(words=quote(robot)),
                )
