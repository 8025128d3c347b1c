"""How a turn of the robot's reads amid what was said around it, as talks that a coder marked tell it."""

from collections.abc import Iterator
from dataclasses import replace

from norm_core.flag import Attribute, Evidence, Polarity
from norm_monitor.cues.finding import Finding, Findings, quoted, said
from norm_monitor.cues.table import Table
from norm_monitor.exchange import Exchange, Reading, Stage
from norm_monitor.meaning import Meaning
from norm_monitor.scene import Scene
from norm_monitor.turns import Turn

CUES = {Polarity.ERROR: "reads_amiss", Polarity.COMPETENCE: "reads_well"}

# What a turn that reads amiss, or well, does, by what it bears on most.
AMISS = {
    Attribute.EMOTIONS: "does not meet how the person feels",
    Attribute.ENGAGEMENT: "passes over the person's interest, or lack of it",
    Attribute.CONVERSATIONAL_MECHANICS: "does not follow from what was said",
    Attribute.KNOWLEDGE_STATE: "does not fit what the person knows or has said",
    Attribute.USER_INTENTION: "is not what the person wanted",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "is out of place before the people who are there",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "is not what is polite or customary here",
}
INSTEAD = {
    Attribute.EMOTIONS: "Say first that you heard how the person feels, and match your tone to it.",
    Attribute.ENGAGEMENT: "Take up what the person shows interest in, and let them go where they show none.",
    Attribute.CONVERSATIONAL_MECHANICS: "Answer what was said, briefly, before anything else.",
    Attribute.KNOWLEDGE_STATE: "Build on what the person has said and knows; ask, or admit it, where you do not know.",
    Attribute.USER_INTENTION: "Ask what the person is after, or do what they asked for, and no more.",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "Mind who is there and how they stand to each other.",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "Keep to the courtesies that are due here.",
}
WELL = {
    Attribute.EMOTIONS: "meets how the person feels",
    Attribute.ENGAGEMENT: "draws the person in",
    Attribute.CONVERSATIONAL_MECHANICS: "keeps the talk on its way",
    Attribute.KNOWLEDGE_STATE: "builds on what the person knows or has said",
    Attribute.USER_INTENTION: "serves what the person is after",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "is tactful towards the people who are there",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "keeps what is polite and customary",
}
# What a doubted finding's probability is at most: it raises nothing, and is still shown to the judge.
DOUBTED = 0.4
_THRESHOLDS = {Stage.SAID: "said", Stage.ANSWERED: "answered", Stage.GONE_ON: "gone_on"}


def exchange(scene: Scene, table: Table, meaning: Meaning) -> Iterator[Findings]:
    """Each turn is read when it ends, when a person answers it, and when the robot goes on from there."""
    for robot in scene.recent:
        if not robot.is_robot or not _is_readable(robot):
            continue
        around = _around(scene, robot)
        reading = meaning.read(around)
        name = _THRESHOLDS[around.stage]
        above = {
            polarity: reading.probability[polarity] / table.cues[cue_id].value(name)
            for polarity, cue_id in CUES.items()
        }
        polarity = max(above, key=lambda one: above[one])
        if above[polarity] >= 1:
            yield _found(scene, table, robot, reading, polarity, table.cues[CUES[polarity]].value(name))


def in_doubt(finding: Finding, scene: Scene, table: Table, meaning: Meaning) -> Finding:
    """The finding; held below the floor where it is of words, and the robot's turn that it is about reads otherwise."""
    least = table.cues[finding.cue_id].doubted_below if finding.cue_id in table.cues else 0.0
    robot = next((turn for turn in scene.robot_turns if turn.start_ns == finding.onset_ns), None)
    if not least or robot is None or not _is_readable(robot):
        return finding
    reads_so = meaning.read(_around(scene, robot)).probability[finding.polarity]
    return finding if reads_so >= least else replace(finding, probability=min(finding.probability, DOUBTED))


def _is_readable(robot: Turn) -> bool:
    return not robot.ongoing and bool(robot.text.strip())


def _around(scene: Scene, robot: Turn) -> Exchange:
    """The turn with all that people said between it and the robot's turns beside it."""
    before = scene.robot_turn_before(robot)
    then = scene.next_robot_turn(robot)
    if then is not None and then.ongoing:
        then = None
    since_ns = before.start_ns if before else 0
    until_ns = then.start_ns if then else scene.window.end_ns
    return Exchange(
        before=_words(scene, since_ns, robot.start_ns),
        said=robot.text,
        after=_words(scene, robot.start_ns, until_ns),
        then=then.text if then else "",
        opening=before is None,
    )


def _words(scene: Scene, from_ns: int, until_ns: int) -> str:
    return " ".join(turn.text for turn in scene.user_turns if from_ns <= turn.start_ns < until_ns).strip()


def _found(scene: Scene, table: Table, robot: Turn, reading: Reading, polarity: Polarity, least: float) -> Findings:  # noqa: PLR0917
    attributes = reading.attributes[polarity]
    amiss = polarity is Polarity.ERROR
    user = scene.user_turn_before(robot)
    to = f"To {said(user)} the robot said {said(robot)}" if user else f"The robot began with {said(robot)}"
    measured: list[Evidence] = [
        quoted(robot, f"probability that it reads {'amiss' if amiss else 'well'}", reading.probability[polarity], least)
    ]
    if user:
        measured.append(quoted(user, "words before it", user.word_count))
    return table.found(
        CUES[polarity],
        anchor=robot.turn_id,
        onset_ns=robot.start_ns,
        offset_ns=robot.end_ns,
        evidence=measured,
        rationale=f"{to}, which {(AMISS if amiss else WELL)[attributes[0]]}.",
        probability=reading.sureness[polarity],
        correction=INSTEAD[attributes[0]] if amiss else "",
        attributes=attributes,
    )
