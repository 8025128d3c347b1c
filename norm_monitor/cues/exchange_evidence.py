"""Classify the robot's turn in its exchange, as learnt from talks that a coder marked."""

from collections.abc import Iterator
from dataclasses import replace

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.runtime.time import s_to_ns
from norm_monitor.context.exchange_context import ExchangeContext, exchange_context
from norm_monitor.context.meaning import Meaning
from norm_monitor.context.scene import Scene
from norm_monitor.context.set_phrases import is_warning
from norm_monitor.context.turns import GAP_NS, Turn
from norm_monitor.context.wording import sentences
from norm_monitor.cues.finding import Finding, Findings, LookAgain, evidence_of, quote
from norm_monitor.cues.repetition import asked_again
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.exchange.exchange_record import ExchangeStage
from norm_monitor.units.unit import Unit

# The similarity from which a turn says the same as the one before.
SAME = 0.8
# The probability of a finding at the end of a turn that the answer refutes.
RETRACTED = 0.01

CUES = {Polarity.ERROR: "reads_amiss", Polarity.COMPETENCE: "reads_well"}

# How a turn reads, by its main attribute.
AMISS = {
    Attribute.EMOTIONS: "missing how the person feels",
    Attribute.ENGAGEMENT: "not noticing whether the person is interested",
    Attribute.CONVERSATIONAL_MECHANICS: "not following from what was said",
    Attribute.KNOWLEDGE_STATE: "ignoring what the person knows or has said",
    Attribute.USER_INTENTION: "missing what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "out of place in front of these people",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "lacking the courtesy due here",
}
INSTEAD = {
    Attribute.EMOTIONS: "Acknowledge how the person feels first, and match your tone to it.",
    Attribute.ENGAGEMENT: "Follow what interests the person, and stop when they lose interest.",
    Attribute.CONVERSATIONAL_MECHANICS: "Answer what was said, briefly, before anything else.",
    Attribute.KNOWLEDGE_STATE: "Use what the person knows and has said; where you are not sure, ask.",
    Attribute.USER_INTENTION: "Do what the person asked for and no more, or ask what they want.",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "Consider who is there and how they relate to each other.",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "Add the courtesy due here, such as a greeting, thanks or an apology.",
}
WELL = {
    Attribute.EMOTIONS: "responding to how the person feels",
    Attribute.ENGAGEMENT: "keeping the person interested",
    Attribute.CONVERSATIONAL_MECHANICS: "keeping the conversation going",
    Attribute.KNOWLEDGE_STATE: "building on what the person knows or has said",
    Attribute.USER_INTENTION: "serving what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "tactful towards the people who are there",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "the courtesy due here",
}


def exchange(scene: Scene, table: ThresholdTable, meaning: Meaning) -> Iterator[Findings]:
    """Classify each turn once somebody answered, nobody did for a while, or the robot continued.

    If the input ends before that, classify the turn with what is there. A turn that surely reads amiss is found at
    its end; what follows confirms or retracts that.
    """
    for robot, then in zip(scene.robot_turns, (*scene.robot_turns[1:], None), strict=False):
        if max(robot.end_ns, then.end_ns if then else 0) < scene.start_ns or robot.ongoing or not robot.text.strip():
            continue
        around = exchange_context(scene, robot)
        alone = replace(around, after=(), then=None, exchange=replace(around.exchange, after="", then=""))
        is_sure = _is_sure(table, meaning, alone)
        due_ns = _turn_over_ns(table, around)
        if not scene.input_ended and scene.end_ns <= due_ns:
            if is_sure and around.exchange.stage is ExchangeStage.SAID:
                yield _finding(table, meaning, alone, Polarity.ERROR)
            yield LookAgain(at_ns=due_ns + 1)
            continue
        polarity = _polarity(table, meaning, around)
        if polarity:
            yield _finding(table, meaning, around, polarity)
        # A turn in several pieces may have been sure of a part.
        if (is_sure or len(robot.spans) > 1) and not _is_confirmed(table, meaning, around):
            yield replace(_finding(table, meaning, alone, Polarity.ERROR), probability=RETRACTED)


def _is_confirmed(table: ThresholdTable, meaning: Meaning, around: ExchangeContext) -> bool:
    """Whether the turn reads amiss with all that followed it, or with the first answers alone."""
    first = (around.after[:count] for count in range(1, len(around.after) + 1))
    cut = (replace(around.exchange, after=" ".join(turn.text for turn in turns), then="") for turns in first)
    known = [replace(around, then=None, exchange=exchange) for exchange in cut]
    return any(_polarity(table, meaning, one) is Polarity.ERROR for one in (around, *known))


def _turn_over_ns(table: ThresholdTable, around: ExchangeContext) -> int:
    """Return when the last turn is surely over: a recognizer or a voice may deliver it in pieces."""
    if around.exchange.stage is ExchangeStage.SAID:
        return around.robot.end_ns + s_to_ns(table.cues[CUES[Polarity.ERROR]].value("quiet_s"))
    last = (around.then,) if around.then else (around.robot, *around.after)
    return max(turn.end_ns for turn in last) + GAP_NS


def _is_sure(table: ThresholdTable, meaning: Meaning, alone: ExchangeContext) -> bool:
    """Whether a turn reads amiss so surely that its flag need not wait for an answer."""
    probability = meaning.read(alone.exchange).probability
    least = table.cues[CUES[Polarity.ERROR]].value("at_once")
    is_amiss = probability[Polarity.ERROR] >= max(least, probability[Polarity.COMPETENCE])
    return is_amiss and not _is_excused(meaning, alone)


def _polarity(table: ThresholdTable, meaning: Meaning, around: ExchangeContext) -> Polarity | None:
    """Return whether the turn reads amiss or well, or None for neither."""
    probability, least = meaning.read(around.exchange).probability, _least(table, around)
    polarity = max(CUES, key=lambda one: probability[one] - least[one])
    if probability[polarity] < least[polarity] or (polarity is Polarity.ERROR and _is_excused(meaning, around)):
        return None
    return polarity


def _least(table: ThresholdTable, around: ExchangeContext) -> dict[Polarity, float]:
    stage = around.exchange.stage.name.lower()
    return {polarity: table.cues[cue_id].value(stage) for polarity, cue_id in CUES.items()}


def _finding(table: ThresholdTable, meaning: Meaning, around: ExchangeContext, polarity: Polarity) -> Finding:
    reading, robot = meaning.read(around.exchange), around.robot
    attributes = reading.attributes[polarity]
    amiss = polarity is Polarity.ERROR
    what = f"probability that it reads {'amiss' if amiss else 'well'}"
    least = _least(table, around)[polarity]
    return table.finding(
        CUES[polarity],
        Unit.of_turn(robot),
        evidence=[evidence_of(robot, what, reading.probability[polarity], least), *_words_around(around)],
        rationale=f"The robot said {quote(robot)}, which reads as {(AMISS if amiss else WELL)[attributes[0]]}.",
        probability=reading.precision_at_score[polarity],
        correction=INSTEAD[attributes[0]] if amiss else "",
        attributes=attributes,
    )


def _is_excused(meaning: Meaning, around: ExchangeContext) -> bool:
    """Whether a turn can hardly be an error: an opening, a warning, or a repetition on request."""
    return _is_opening(meaning, around) or _is_called_for(meaning, around)


def _is_opening(meaning: Meaning, around: ExchangeContext) -> bool:
    """Whether the turn only greets or offers help in reply to at most a greeting, so that it can miss nothing."""

    def does(text: str, *concepts: str) -> bool:
        return all(any(meaning.match(part, concept) for concept in concepts) for part in sentences(text))

    words = around.exchange
    return words.opening and does(words.before, "greeting") and does(words.said, "greeting", "welcome", "offering")


def _is_called_for(meaning: Meaning, around: ExchangeContext) -> bool:
    """Whether the turn only warns of danger, or says again what it was asked to say again."""
    words = around.exchange
    if is_warning(words.said):
        return True
    asked = bool(around.before) and asked_again(meaning, around.before[-1].text)
    return asked and meaning.similarity(words.earlier, words.said) >= SAME


def _words_around(around: ExchangeContext) -> Iterator[Evidence]:
    parts: tuple[tuple[str, tuple[Turn, ...]], ...] = (
        ("words of the turn before", around.before),
        ("words of the turn after", around.after),
        ("words of the robot's next turn", (around.then,) if around.then else ()),
    )
    for measure, turns in parts:
        for turn in turns[-1:]:
            yield evidence_of(turn, measure, turn.word_count)
