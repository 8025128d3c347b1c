"""Weigh the evidence on a unit: its probability, and how that adds up in log odds."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log, prod

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.record import record
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.unit import Unit, UnitJudgement, name_judge_measure
from norm_monitor.assessment.unit_model import UnitReading

# Bounds of a probability, so that no single piece of evidence is beyond doubt.
MIN_PROBABILITY, MAX_PROBABILITY = 0.01, 0.99


def clip(probability: float) -> float:
    """Return a probability within the bounds."""
    return min(max(probability, MIN_PROBABILITY), MAX_PROBABILITY)


def log_odds(probability: float) -> float:
    """Return the log odds of a probability."""
    return log(probability / (1 - probability))


@record
class Step:
    """A step beside the facts, with its probability and what it adds to the log odds."""

    measure: str
    value: float
    weight: float

    def evidence(self, start_ns: int, end_ns: int) -> Evidence:
        """Return the step as evidence of a flag."""
        value, weight = round(self.value, 3), round(self.weight, 2)
        return Evidence(measure=self.measure, value=value, weight=weight, start_ns=start_ns, end_ns=end_ns)


def steps_to(
    polarity: Polarity,
    odds: Mapping[Polarity, float],
    *,
    facts_odds: float | None,
    support: Sequence[Finding],
    judgement: UnitJudgement | None,
    judge_weight: float,
) -> tuple[Step, ...]:
    """Return the steps from the facts' odds of a polarity to its probability, in the order in which they are taken.

    `odds` are those by all evidence, against an ordinary unit. Without facts they start as even.
    """
    steps = []
    doubt, at = 1.0, 0.0
    if facts_odds is not None:
        doubt = 1 / (1 + facts_odds)
        at = log_odds(clip(1 - doubt))
        steps.append(
            Step(measure="limit of what facts alone can tell", value=clip(1 - doubt), weight=at - log(facts_odds))
        )
    for finding in support:
        if finding.probability:
            doubt *= 1 - finding.probability
            before, at = at, log_odds(clip(1 - doubt))
            measure = f"probability that {finding.reason.cue_id} states"
            steps.append(Step(measure=measure, value=finding.probability, weight=at - before))
    if judgement:
        likely = judgement.probability[polarity]
        ratio = clip(likely) / clip(1 - sum(judgement.probability.values()))
        steps.append(Step(measure=name_judge_measure(polarity), value=likely, weight=judge_weight * log(ratio)))
    other = next(candidate for candidate in Polarity if candidate is not polarity)
    chance = f"chance that it is a{'n' if other is Polarity.ERROR else ''} {other} instead"
    steps.append(Step(measure=chance, value=odds[other] / (1 + sum(odds.values())), weight=-log(1 + odds[other])))
    return tuple(step for step in steps if round(step.weight, 2))


@record
class Assessment:
    """The combined evidence on a unit."""

    polarity: Polarity
    likely: dict[Polarity, float]
    attributes: tuple[Attribute, ...]
    facts_support: bool  # whether the unit's facts alone are for the polarity
    support: tuple[Finding, ...]  # the findings for the polarity, the strongest first
    judgement: UnitJudgement | None  # the judgement, if it is for the polarity
    steps: tuple[Step, ...]  # from the facts' odds to the probability

    @property
    def probability(self) -> float:
        """The probability of the polarity."""
        return self.likely[self.polarity]


def weigh(
    findings: Collection[Finding],
    judgement: UnitJudgement | None,
    judge_weight: float,
    reading: UnitReading | None = None,
) -> Assessment:
    """Return the likelier polarity with its support, whatever the order of the findings.

    The facts of the unit, and each finding that states a probability, add up as independent causes do. The judge
    multiplies the odds of each polarity against an ordinary unit, to the power of its weight. A unit cannot be both
    an error and a competence.
    """
    judgement = judgement if judge_weight else None
    odds = {polarity: _odds(findings, judgement, polarity, judge_weight, reading) for polarity in Polarity}
    polarity = max(Polarity, key=lambda polarity: odds[polarity])  # in a tie the error, which comes first
    support = tuple(
        sorted(
            (finding for finding in findings if finding.reason.polarity is polarity),
            key=lambda finding: (-finding.probability, finding.reason.cue_id),
        )
    )
    supporting = judgement if judgement and is_for(judgement, polarity) else None
    return Assessment(
        polarity=polarity,
        likely={polarity: odds[polarity] / (1 + sum(odds.values())) for polarity in Polarity},
        attributes=_attributes(support, supporting, reading, polarity),
        facts_support=bool(reading and reading.odds.get(polarity, 0) >= 1),
        support=support,
        judgement=supporting,
        steps=steps_to(
            polarity,
            odds,
            facts_odds=reading.odds.get(polarity) if reading else None,
            support=support,
            judgement=judgement,
            judge_weight=judge_weight,
        ),
    )


def _odds(
    findings: Iterable[Finding],
    judgement: UnitJudgement | None,
    polarity: Polarity,
    judge_weight: float,
    reading: UnitReading | None,
) -> float:
    """Return the odds of a polarity against an ordinary unit."""
    odds = evidence_odds(findings, polarity, reading)
    if judgement is None:
        return odds or 0.0
    ordinary = 1 - sum(judgement.probability.values())
    ratio = clip(judgement.probability[polarity]) / clip(ordinary)
    return float((1.0 if odds is None else odds) * ratio**judge_weight)


def evidence_odds(findings: Iterable[Finding], polarity: Polarity, reading: UnitReading | None) -> float | None:
    """Return the odds of a polarity by facts and findings, without a judge; None where nothing is weighed."""
    # Sorted, because rounding depends on the order.
    doubts = sorted(
        1 - finding.probability for finding in findings if finding.reason.polarity is polarity and finding.probability
    )
    if reading and polarity in reading.odds:
        doubts.append(1 / (1 + reading.odds[polarity]))
    likely = clip(1 - prod(doubts))
    return likely / (1 - likely) if doubts else None


def _attributes(
    support: Iterable[Finding], judgement: UnitJudgement | None, reading: UnitReading | None, polarity: Polarity
) -> tuple[Attribute, ...]:
    """Return the attributes of the judge and of findings with a probability, or else those of the facts."""
    named = {attribute for finding in support if finding.probability for attribute in finding.reason.attributes}
    named |= set(judgement.attributes) if judgement else set()
    if named or reading is None:
        return tuple(attribute for attribute in Attribute if attribute in named)
    return reading.attributes[polarity]


def counted_judgement(
    unit: Unit, judgement: UnitJudgement | None, judged: Iterable[tuple[Unit, UnitJudgement | None]]
) -> UnitJudgement | None:
    """Return the judge's answer on a unit, or None for a silence if the judge blames the late answer that ends it.

    The two are one incident, which is flagged whichever of them the judge blames. `judged` holds the other
    units with their answers.
    """
    if judgement is None or is_for(judgement, Polarity.ERROR):
        return judgement
    is_charged = any(other and unit.is_ended_by(turn) and is_for(other, Polarity.ERROR) for turn, other in judged)
    return None if is_charged else judgement


def is_for(judgement: UnitJudgement, polarity: Polarity) -> bool:
    """Whether the polarity is the likeliest answer of the judge."""
    own = judgement.probability[polarity]
    return own >= max(judgement.probability.values()) and own >= 1 - sum(judgement.probability.values())
