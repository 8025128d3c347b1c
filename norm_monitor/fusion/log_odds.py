"""How the probability of a flag adds up, in log odds, from where it starts to the chance of the other polarity."""

from collections.abc import Mapping, Sequence
from math import log

from norm_core.records.flag import Evidence, Polarity
from norm_core.records.record import record
from norm_monitor.cues.finding import Finding
from norm_monitor.units.judgement import UnitJudgement, judge_measure

# Bounds of a probability, so that no single piece of evidence is beyond doubt.
LEAST, MOST = 0.01, 0.99


def clipped(probability: float) -> float:
    """Return a probability within the bounds."""
    return min(max(probability, LEAST), MOST)


def log_odds(probability: float) -> float:
    """Return the log odds of a probability."""
    return log(probability / (1 - probability))


@record
class Step:
    """One step beside the facts: what it is, its value as a probability, and what it adds to the log odds."""

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
        at = log_odds(clipped(1 - doubt))
        steps.append(
            Step(measure="limit of what facts alone can tell", value=clipped(1 - doubt), weight=at - log(facts_odds))
        )
    for one in support:
        if one.probability:
            doubt *= 1 - one.probability
            before, at = at, log_odds(clipped(1 - doubt))
            stated = f"probability that {one.cue_id} states"
            steps.append(Step(measure=stated, value=one.probability, weight=at - before))
    if judgement:
        likely = judgement.probability[polarity]
        ratio = clipped(likely) / clipped(1 - sum(judgement.probability.values()))
        steps.append(Step(measure=judge_measure(polarity), value=likely, weight=judge_weight * log(ratio)))
    other = next(one for one in Polarity if one is not polarity)
    chance = f"chance that it is a{'n' if other is Polarity.ERROR else ''} {other} instead"
    steps.append(Step(measure=chance, value=odds[other] / (1 + sum(odds.values())), weight=-log(1 + odds[other])))
    return tuple(step for step in steps if round(step.weight, 2))
