"""What a flag says of a unit when no cue has noted anything: a cue id, one sentence and what to do instead."""

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import ns_to_s
from norm_monitor.cues.finding import quote, quote_end
from norm_monitor.fusion.unit_model import AdditiveScore
from norm_monitor.units.unit import UnitKind
from norm_monitor.units.unit_facts import MEASURES, MeasuredUnit

# How many facts a flag cites one by one, and the least weight of one.
_MOST_CITED, _LEAST_WEIGHT = 6, 0.1
# What a flag calls the facts that it does not cite one by one.
SMALLER_FACTS = "smaller facts, together"

_AMISS = {
    Attribute.EMOTIONS: "missing how the person feels",
    Attribute.ENGAGEMENT: "not noticing whether the person is interested",
    Attribute.CONVERSATIONAL_MECHANICS: "not following from what was said",
    Attribute.KNOWLEDGE_STATE: "ignoring what the person knows or has said",
    Attribute.USER_INTENTION: "missing what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "out of place in this situation",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "lacking the courtesy due here",
}
_INSTEAD = {
    Attribute.EMOTIONS: "Acknowledge how the person feels first, and match your tone to it.",
    Attribute.ENGAGEMENT: "Follow what interests the person, and stop when they lose interest.",
    Attribute.CONVERSATIONAL_MECHANICS: "Answer what was said, briefly, before anything else.",
    Attribute.KNOWLEDGE_STATE: "Use what the person knows and has said; where you are not sure, ask.",
    Attribute.USER_INTENTION: "Do what the person asked for and no more, or ask what they want.",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "Consider who is there and how they relate to each other.",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "Add the courtesy due here, such as a greeting, thanks or an apology.",
}
_WELL = {
    Attribute.EMOTIONS: "responding to how the person feels",
    Attribute.ENGAGEMENT: "keeping the person interested",
    Attribute.CONVERSATIONAL_MECHANICS: "keeping the conversation going",
    Attribute.KNOWLEDGE_STATE: "building on what the person knows or has said",
    Attribute.USER_INTENTION: "serving what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "tactful in this situation",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "the courtesy due here",
}
# Where several people were heard or seen.
_IN_COMPANY = {True: "out of place in front of these people", False: "tactful towards the people who are there"}
_CUES = {
    (UnitKind.ROBOT_TURN, Polarity.ERROR): "unsuitable_words",
    (UnitKind.ROBOT_TURN, Polarity.COMPETENCE): "suitable_words",
    (UnitKind.SILENCE, Polarity.ERROR): "no_response",
    (UnitKind.SILENCE, Polarity.COMPETENCE): "waits_for_end",
    (UnitKind.PERSON_TURN, Polarity.ERROR): "talks_over_user",
    (UnitKind.PERSON_TURN, Polarity.COMPETENCE): "waits_for_end",
}


def cue_of(kind: UnitKind, polarity: Polarity) -> str:
    """Return the cue under which the facts of a unit are flagged, where no cue of its own explains them."""
    return _CUES.get((kind, polarity), "unsuitable_words" if polarity is Polarity.ERROR else "suitable_words")


@record
class UnitNote:
    """A note on a unit."""

    cue_id: str
    rationale: str
    correction: str


def note_of(measured: MeasuredUnit, polarity: Polarity, attributes: tuple[Attribute, ...]) -> UnitNote:
    """Say what the unit's facts amount to."""
    unit, amiss = measured.unit, polarity is Polarity.ERROR
    return UnitNote(
        cue_id=cue_of(unit.kind, polarity),
        rationale=_rationale(measured, amiss, attributes[0]),
        correction=_correction(unit.kind, attributes[0]) if amiss else "",
    )


def cited_facts(measured: MeasuredUnit, score: AdditiveScore) -> tuple[Evidence, ...]:
    """Return the measured facts that weigh most in a score, what supports it first; then all others together.

    There is always at least one fact. The weights and the score's intercept add up to the score.
    """
    added = score.parts(measured.facts)
    heaviest = sorted(measured.facts, key=lambda name: (-abs(added.get(name, 0.0)), name))[:_MOST_CITED]
    cited = [name for rank, name in enumerate(heaviest) if not rank or abs(added.get(name, 0.0)) >= _LEAST_WEIGHT]
    evidence = [
        fact_evidence(measured, name, added.get(name, 0.0))
        for name in sorted(cited, key=lambda name: (-added.get(name, 0.0), name))
    ]
    others = [weight for name, weight in added.items() if weight and name not in cited]
    if others:
        rest = score.of(measured.facts) - score.intercept - sum(one.weight or 0.0 for one in evidence)
        evidence.append(_evidence(measured, SMALLER_FACTS, "facts", value=len(others), weight=rest))
    return tuple(evidence)


def _evidence(measured: MeasuredUnit, measure: str, unit: str, *, value: float, weight: float) -> Evidence:
    return Evidence(
        measure=measure,
        value=round(value, 3),
        weight=round(weight, 2),
        unit=unit,
        start_ns=measured.unit.onset_ns,
        end_ns=measured.unit.onset_ns if measured.unit.offset_ns is None else measured.unit.offset_ns,
        source_topic=measured.turn.source_topic,
        utterance_id=measured.turn.turn_id,
        quote=measured.turn.text,
    )


def fact_evidence(measured: MeasuredUnit, name: str, weight: float) -> Evidence:
    """Return a fact of a unit with its weight as evidence."""
    return _evidence(measured, *MEASURES[name], value=measured.facts[name], weight=weight)


def _rationale(measured: MeasuredUnit, amiss: bool, about: Attribute) -> str:
    turn, kind = measured.turn, measured.unit.kind
    if kind is UnitKind.SILENCE:
        end_ns = measured.unit.offset_ns
        silent_s = measured.facts["gap_after_s"] if end_ns is None else ns_to_s(end_ns - measured.unit.onset_ns)
        said = "the robot was silent" if amiss else "the robot left the person time"
        return f"After {quote_end(turn)} {said} for {silent_s:.1f} s."
    if kind is UnitKind.PERSON_TURN:
        return f"The robot {'did not let' if amiss else 'let'} the person finish {quote(turn)}."
    reads_as = (_AMISS if amiss else _WELL)[about]
    if about is Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS and _is_company(measured):
        reads_as = _IN_COMPANY[amiss]
    return f"The robot said {quote(turn)}, which reads as {reads_as}."


def _is_company(measured: MeasuredUnit) -> bool:
    """Whether more than one person was heard or seen around the turn."""
    return max(measured.facts.get("voices", 0.0), measured.facts.get("faces", 0.0)) > 1


def _correction(kind: UnitKind, about: Attribute) -> str:
    if kind is UnitKind.SILENCE:
        return "Answer, or say that you did not understand or need time."
    return "Let the person finish, then answer." if kind is UnitKind.PERSON_TURN else _INSTEAD[about]
