"""Word a flag: why it was raised, why it was withdrawn, and how its probability adds up."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from norm_core.records.flag import YES_OR_NO, Attribute, Evidence, Polarity, Severity, SocialFlag, Tier
from norm_core.records.record import record
from norm_core.runtime.time import ns_to_s
from norm_monitor.assessment.finding import Reason, quote, quote_end, quote_text
from norm_monitor.assessment.reasons.reactions import LATER_WORDS
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_facts import MEASURES, MeasuredUnit
from norm_monitor.assessment.unit_model import AdditiveScore, is_slow
from norm_monitor.context.wording import (
    asks_to_stop,
    belittles,
    blames,
    denies,
    disputes_fact,
    is_question,
    is_request,
    refuses_help,
    says_it_was_told,
    says_robot_differs,
    threatens,
)

_SUPPORT = {
    Tier.CUE: "measured facts, without a judge",
    Tier.JUDGE: "a judge alone",
    Tier.FUSED: "measured facts and a judge",
}
# Maximum number of facts that a flag cites one by one.
_MAX_CITED = 6
# A fact with a smaller weight in log odds is not cited by itself, unless it is the heaviest.
_MIN_CITED_WEIGHT = 0.1
# The name of all facts that a flag does not cite one by one.
SMALLER_FACTS = "smaller facts, together"
_FAULTS = {
    Attribute.EMOTIONS: "missing how the person feels",
    Attribute.ENGAGEMENT: "not noticing whether the person is interested",
    Attribute.CONVERSATIONAL_MECHANICS: "not following from what was said",
    Attribute.KNOWLEDGE_STATE: "ignoring what the person knows or has said",
    Attribute.USER_INTENTION: "missing what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "out of place in this situation",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "lacking the courtesy due here",
}
_CORRECTIONS = {
    Attribute.EMOTIONS: "Acknowledge how the person feels first, and match your tone to it.",
    Attribute.ENGAGEMENT: "Take up what the person says or wants before anything of your own.",
    Attribute.CONVERSATIONAL_MECHANICS: "Answer what was said, briefly, before anything else.",
    Attribute.KNOWLEDGE_STATE: "Use what the person knows and has said; where you are not sure, ask.",
    Attribute.USER_INTENTION: "Do what the person asked for and no more, or ask what they want.",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "Show respect: use the right name; do not mock, press or tell secrets.",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "Be courteous: greet, thank or apologise where due, and talk down to nobody.",
}
_SILENT_CORRECTIONS = {
    UnitKind.SILENCE: "Answer, or say that you did not understand or need time.",
    UnitKind.PERSON_TURN: "Let the person finish, then answer.",
}
_MERITS = {
    Attribute.EMOTIONS: "responding to how the person feels",
    Attribute.ENGAGEMENT: "keeping the person interested",
    Attribute.CONVERSATIONAL_MECHANICS: "keeping the conversation going",
    Attribute.KNOWLEDGE_STATE: "building on what the person knows or has said",
    Attribute.USER_INTENTION: "serving what the person wants",
    Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS: "tactful in this situation",
    Attribute.SOCIAL_NORMS_AND_ROUTINES: "the courtesy due here",
}
# The cues whose advice does not say what went wrong.
_VAGUE = frozenset({"no_apology", "apologised_for", "admits_impoliteness"})
# The attributes for which the correction quotes what the robot should have answered.
_ABOUT_WHAT_WAS_SAID = {
    Attribute.ENGAGEMENT,
    Attribute.CONVERSATIONAL_MECHANICS,
    Attribute.KNOWLEDGE_STATE,
    Attribute.USER_INTENTION,
}
# The share of repeated words from which a turn says the same again.
_MIN_REPEATED_SHARE = 0.6
# A turn with more words is called too long.
_MAX_WORDS = 40
# How a turn reads where several people were heard or seen, by whether it is an error.
_IN_COMPANY = {True: "out of place in front of these people", False: "tactful towards the people who are there"}
_CUES = {
    (UnitKind.ROBOT_TURN, Polarity.ERROR): "unsuitable_words",
    (UnitKind.ROBOT_TURN, Polarity.COMPETENCE): "suitable_words",
    (UnitKind.SILENCE, Polarity.ERROR): "no_response",
    (UnitKind.SILENCE, Polarity.COMPETENCE): "waits_for_end",
    (UnitKind.PERSON_TURN, Polarity.ERROR): "talks_over_user",
    (UnitKind.PERSON_TURN, Polarity.COMPETENCE): "waits_for_end",
}


def explain(flag: SocialFlag) -> str:
    """Describe a flag in a few lines: event, reason, measurements, correction and sources."""
    about = ", ".join(attribute.value.replace("_", " ") for attribute in flag.attributes)
    kind = f"{flag.severity.value} social error" if flag.polarity is Polarity.ERROR else "social competence"
    lines = [f"{kind[0].upper()}{kind[1:]} ({about}), probability {flag.probability:.2f}.", flag.rationale]
    quotes: set[str] = set()
    for evidence in flag.evidence:
        lines.append(
            f"Measured: {describe_measurement(replace(evidence, quote='') if evidence.quote in quotes else evidence)}."
        )
        quotes.add(evidence.quote)
    if total := describe_sum(flag):
        lines.append(f"Sum: {total}.")
    if flag.correction:
        lines.append(f"Instead: {flag.correction}")
    made_by = flag.provenance
    lines.append(
        f"Last changed {ns_to_s(flag.decision_ns - flag.onset_ns):.1f} s after its onset, from {_SUPPORT[flag.tier]}"
        + (f" ({flag.cue_id})" if flag.cue_id else "")
        + (f", model {made_by.model}" if made_by.model else "")
        + (", outside parity, as a window or the judge was late" if made_by.window_late else "")
        + "."
    )
    return "\n".join(lines)


def describe_sum(flag: SocialFlag) -> str:
    """Describe how the weights lead to the probability, and its threshold; empty where nothing was weighed."""
    base = flag.base_log_odds
    if base is None or flag.threshold is None:
        return ""
    weights = sum(entry.weight or 0.0 for entry in flag.evidence)
    if not any(entry.weight is not None for entry in flag.evidence):
        return ""
    return (
        f"{base:+.2f} at the start and {weights:+.2f} by weights are log odds of {base + weights:+.2f}, that is "
        f"probability {flag.probability:.2f} against a threshold of {flag.threshold:.2f}"
    )


def describe_measurement(evidence: Evidence) -> str:
    """Describe what was measured, against which threshold, and in which words."""
    is_yes_or_no = evidence.unit == YES_OR_NO
    unit = f" {evidence.unit}" if evidence.unit and not is_yes_or_no else ""
    value = f": {'yes' if evidence.value else 'no'}" if is_yes_or_no else f" {evidence.value:g}{unit}"
    against = f" against a threshold of {evidence.threshold:g}{unit}" if evidence.threshold is not None else ""
    against += f", weight {evidence.weight:+.2f}" if evidence.weight is not None else ""
    evidence_of = f", in “{evidence.quote}”" if evidence.quote else ""
    return f"{evidence.measure}{value}{against}{evidence_of}"


def cue_of(kind: UnitKind, polarity: Polarity) -> str:
    """Return the cue id of a flag that rests on facts, where no reason words it."""
    return _CUES.get((kind, polarity), "unsuitable_words" if polarity is Polarity.ERROR else "suitable_words")


def default_severity(polarity: Polarity) -> Severity:
    """Return the severity of a flag without a cue that states one."""
    return Severity.MINOR if polarity is Polarity.ERROR else Severity.INFO


def note_of(measured: MeasuredUnit, polarity: Polarity, attributes: tuple[Attribute, ...]) -> Reason:
    """Word a flag that rests on facts alone."""
    unit = measured.unit
    is_error = polarity is Polarity.ERROR
    return Reason(
        cue_id=cue_of(unit.kind, polarity),
        polarity=polarity,
        attributes=attributes,
        severity=default_severity(polarity),
        rationale=_word_rationale(measured, is_error, attributes[0]),
        correction=word_correction(unit.kind, attributes, measured) if is_error else "",
    )


def cited_facts(measured: MeasuredUnit, score: AdditiveScore) -> tuple[Evidence, ...]:
    """Return the measured facts that weigh most in a score, the strongest support first; then all others as one.

    There is always at least one fact. The weights and the score's intercept add up to the score.
    """
    added = score.parts(measured.facts)
    heaviest = sorted(measured.facts, key=lambda name: (-abs(added.get(name, 0.0)), name))[:_MAX_CITED]
    cited = [name for rank, name in enumerate(heaviest) if not rank or abs(added.get(name, 0.0)) >= _MIN_CITED_WEIGHT]
    evidence = [
        cite_fact(measured, name, added.get(name, 0.0))
        for name in sorted(cited, key=lambda name: (-added.get(name, 0.0), name))
    ]
    others = [weight for name, weight in added.items() if weight and name not in cited]
    if others:
        rest = score.of(measured.facts) - score.intercept - sum(entry.weight or 0.0 for entry in evidence)
        evidence.append(_cite_measured(measured, SMALLER_FACTS, "facts", value=len(others), weight=rest))
    return tuple(evidence)


def _cite_measured(measured: MeasuredUnit, measure: str, unit: str, *, value: float, weight: float) -> Evidence:
    """Return a measure of a unit as evidence, with the words of its turn."""
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


def cite_fact(measured: MeasuredUnit, name: str, weight: float) -> Evidence:
    """Return a fact of a unit with its weight as evidence."""
    return _cite_measured(measured, *MEASURES[name], value=measured.facts[name], weight=weight)


def _word_rationale(measured: MeasuredUnit, is_error: bool, about: Attribute) -> str:
    """Say what happened in a unit, and how that reads."""
    turn = measured.turn
    kind = measured.unit.kind
    if kind is UnitKind.SILENCE:
        silent_s = measured.facts["pause_at_work_s" if turn.is_robot else "silence_s"]
        silence = "the robot was silent" if is_error else "the robot left the person time"
        pace_s = measured.facts.get("pace_s")
        usual = f"; so far its answers took {pace_s:.1f} s" if pace_s and is_slow(kind, measured.facts) else ""
        return f"After {quote_end(turn)} {silence} for {silent_s:.1f} s{usual}."
    if kind is UnitKind.PERSON_TURN:
        return f"The robot {'did not let' if is_error else 'let'} the person finish {quote(turn)}."
    reads_as = (_FAULTS if is_error else _MERITS)[about]
    is_in_company = max(measured.facts.get("voices", 0.0), measured.facts.get("faces", 0.0)) > 1
    if about is Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS and is_in_company:
        reads_as = _IN_COMPANY[is_error]
    at_once = "" if measured.settled else " at once, before any answer,"
    context = f", given {quote(measured.turns_on)}" if is_error and measured.turns_on else ""
    return f"The robot said {quote(turn)}, which reads{at_once} as {reads_as}{context}."


def word_correction(
    kind: UnitKind, attributes: Sequence[Attribute], measured: MeasuredUnit | None, reason: Reason | None = None
) -> str:
    """Say what to do instead: by plain words around the unit, else by a reason that fits, else by what happened."""
    if kind is UnitKind.SILENCE and measured and measured.turn.is_robot:
        return "Say how far you are, and how long it will take."
    if kind is not UnitKind.ROBOT_TURN or measured is None:
        return (reason.correction if reason else "") or _SILENT_CORRECTIONS.get(kind, _CORRECTIONS[attributes[0]])
    read = {name: measured.facts.get(f"reader_{name}", 0.0) for name in attributes}
    sure = [name for name in attributes if read[name] > 0]
    # Who is there, the reader does not know: the weights' word on that stands.
    is_social = attributes[0] is Attribute.SOCIAL_CONTEXT_AND_RELATIONSHIPS
    about = max(sure, key=lambda name: read[name]) if sure and not is_social else attributes[0]
    return (
        find_plain_correction(measured)
        or (reason.correction if reason and _is_fitting(reason, attributes, sure) else "")
        or next(_find_corrections(measured, about, attributes))
    )


def _is_fitting(reason: Reason, attributes: Sequence[Attribute], sure: Sequence[Attribute]) -> bool:
    """Whether a reason's advice fits; one that rests on later words must bear on what the flag is surest about."""
    if reason.cue_id in _VAGUE:
        return False
    is_later = reason.cue_id in LATER_WORDS
    return not is_later or (
        reason.attributes[0] in attributes and (not sure or not set(sure).isdisjoint(reason.attributes))
    )


def find_plain_correction(measured: MeasuredUnit) -> str:
    """Return what to do instead of a robot's turn where the words around it say so plainly, else an empty string."""
    robot_words, asked, reaction = measured.turn.text, measured.asked, measured.reaction
    next_words = reaction.text if reaction else ""
    advice = {
        f"Stop at once: the person said {quote(asked) if asked else ''}.": asked and asks_to_stop(asked.text),
        "Do not threaten: say what the person can choose, and respect the choice.": threatens(robot_words),
        "Talk down to nobody: answer this person as you would answer any other.": belittles(robot_words),
        "Do not deny it: check what happened, and admit it where you were wrong.": denies(robot_words),
        "Do not blame the person: say what can be done now.": blames(robot_words),
        "Help, or say why you cannot and who can.": refuses_help(robot_words),
        "Stand by what you said, or say at once that you were wrong.": says_robot_differs(next_words),
        "Remember what you are told, and go on from it: the person then had to say "
        f"{quote(reaction) if reaction else ''}.": says_it_was_told(next_words),
        "Check a fact before you state it, and say so where you are not sure.": disputes_fact(next_words),
    }
    return next((text for text, holds in advice.items() if holds), "")


def _find_corrections(measured: MeasuredUnit, about: Attribute, attributes: Sequence[Attribute]) -> Iterator[str]:
    """Yield the corrections that fit what happened, the most telling first."""
    asked, facts = measured.asked, measured.facts
    if facts.get("unclear") and asked:
        yield f"Say which part of {quote(asked)} was not clear, and ask for that alone."
    if facts.get("says_again", 0.0) >= _MIN_REPEATED_SHARE and asked:
        yield f"Do not say the same again: go on from {quote(asked)}."
    if facts.get("words", 0.0) > _MAX_WORDS:
        yield "Say it in one or two sentences, then let the person speak."
    if about in _ABOUT_WHAT_WAS_SAID and asked and is_question(asked.text):
        yield f"Answer {quote(asked)} first."
    if about in _ABOUT_WHAT_WAS_SAID and Attribute.KNOWLEDGE_STATE in attributes and facts.get("asks"):
        yield "Go by what the person has already said before you ask anything."
    if about in _ABOUT_WHAT_WAS_SAID and asked and is_request(asked.text):
        yield f"Do what {quote(asked)} asks, or say why you cannot."
    if about is Attribute.EMOTIONS and asked and is_question(asked.text):
        yield f"Answer {quote(asked)} in a tone that fits how the person feels."
    yield _CORRECTIONS[about]


@record
class FlagWithdrawal:
    """The reason for which a flag is withdrawn, as a clause, and its evidence."""

    reason: str
    evidence: tuple[Evidence, ...] = ()


def explain_withdrawal(
    before: UnitEvidence, now: UnitEvidence, polarity: Polarity, scores: Mapping[Polarity, AdditiveScore]
) -> FlagWithdrawal:
    """Compare the evidence that last sufficed with the present evidence; where they are alike, the settings changed."""
    if now.judgement and now.judgement is not before.judgement:
        return FlagWithdrawal(reason="the judge reads it otherwise", evidence=now.judgement.evidence)
    changed = [finding for finding in now.findings if finding not in before.findings]
    against = [finding for finding in changed if finding.reason.polarity is not polarity]
    if against:
        objection = against[-1].reason
        return FlagWithdrawal(reason=f"the cue {objection.cue_id} speaks against it", evidence=objection.evidence)
    if polarity is Polarity.ERROR and now.measured and now.measured.is_accepted and now.measured.reaction:
        return FlagWithdrawal(reason=f"the person accepts it: {quote(now.measured.reaction)}")
    if now.measured and (before.measured is None or before.measured.facts != now.measured.facts):
        return _explain_changed_fact(before.measured, now.measured, polarity, scores)
    if changed:
        reason = changed[-1].reason
        return FlagWithdrawal(reason=f"the cue {reason.cue_id} is now less sure of it", evidence=reason.evidence)
    return FlagWithdrawal(reason="the settings now rule it out")


def _explain_changed_fact(
    before: MeasuredUnit | None, now: MeasuredUnit, polarity: Polarity, scores: Mapping[Polarity, AdditiveScore]
) -> FlagWithdrawal:
    """Name the fact whose change or first measurement counts most against the polarity, or for the other one."""
    old_facts = before.facts if before else {}
    loss: defaultdict[str, float] = defaultdict(float)
    for scored, score in scores.items():
        old, new = score.parts(old_facts), score.parts(now.facts)
        for name in new.keys() & now.facts.keys():
            loss[name] += (old[name] - new[name]) * (1 if scored is polarity else -1)
    name = min(now.facts, key=lambda fact: (-loss[fact], fact))
    measure, unit = MEASURES[name]
    evidence = cite_fact(now, name, scores[polarity].parts(now.facts).get(name, 0.0))
    if name == "known_after" or name.startswith(("text_", "encounter_model_", "reader_")):
        return FlagWithdrawal(reason=_word_what_came(before, now), evidence=(evidence,))
    if before is None:
        later = describe_measurement(replace(evidence, quote="", weight=None))
        return FlagWithdrawal(reason=f"a later measurement speaks against it: {later}", evidence=(evidence,))
    if unit == YES_OR_NO:
        holds = "now holds" if now.facts[name] else "does not hold"
        return FlagWithdrawal(reason=f"it {holds} that {measure}", evidence=(evidence,))
    start = f"from {before.facts[name]:.3g} " if name in before.facts else ""
    reason = f"“{measure}” changed {start}to {now.facts[name]:.3g} {unit}".rstrip()
    return FlagWithdrawal(reason=reason, evidence=(evidence,))


def _word_what_came(before: MeasuredUnit | None, now: MeasuredUnit) -> str:
    """Say what came since, where the turn's words are now read otherwise."""
    if before and before.turn.text != now.turn.text:
        return f"the turn was then heard as {quote(now.turn)}"
    earlier = before.exchange if before else None
    for speaker, name in (("robot", "then"), ("person", "after")):
        text = getattr(now.exchange, name, "")
        if text and text != getattr(earlier, name, ""):
            return f"the turn reads otherwise after the {speaker}'s {quote_text(text)}"
    return "the turn reads otherwise with what followed"
