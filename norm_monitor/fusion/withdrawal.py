"""Say what changed about a unit whose evidence no longer suffices for its flag."""

from collections import defaultdict
from collections.abc import Mapping

from norm_core.records.flag import YES_OR_NO, Evidence, Polarity
from norm_core.records.record import record
from norm_monitor.cues.finding import Finding
from norm_monitor.fusion.unit_model import AdditiveScore
from norm_monitor.fusion.unit_notes import fact_evidence
from norm_monitor.units.judgement import UnitJudgement
from norm_monitor.units.unit_facts import MEASURES, MeasuredUnit


@record
class UnitEvidence:
    """What is known of a unit at one moment."""

    measured: MeasuredUnit | None
    findings: tuple[Finding, ...]
    judgement: UnitJudgement | None


@record
class FlagWithdrawal:
    """Why a flag is withdrawn: a clause, and what it rests on."""

    reason: str
    evidence: tuple[Evidence, ...] = ()


def explain_withdrawal(
    before: UnitEvidence, now: UnitEvidence, polarity: Polarity, scores: Mapping[Polarity, AdditiveScore]
) -> FlagWithdrawal:
    """Compare the evidence that last sufficed with that of now; without a difference, the settings changed."""
    if now.judgement and now.judgement is not before.judgement:
        return FlagWithdrawal(reason="the judge reads it otherwise", evidence=now.judgement.evidence)
    against = [one for one in now.findings if one not in before.findings and one.polarity is not polarity]
    if against:
        return FlagWithdrawal(reason=f"the cue {against[-1].cue_id} speaks against it", evidence=against[-1].evidence)
    if before.measured and now.measured and before.measured.facts != now.measured.facts:
        return _of_facts(before.measured, now.measured, polarity, scores)
    return FlagWithdrawal(reason="the settings now rule it out")


def _of_facts(
    before: MeasuredUnit, now: MeasuredUnit, polarity: Polarity, scores: Mapping[Polarity, AdditiveScore]
) -> FlagWithdrawal:
    """Name the fact whose change speaks most against the polarity, or for the other."""
    lost: defaultdict[str, float] = defaultdict(float)
    for one, score in scores.items():
        old, new = score.parts(before.facts), score.parts(now.facts)
        for name in new.keys() & now.facts.keys():
            lost[name] += (old[name] - new[name]) * (1 if one is polarity else -1)
    name = min(now.facts, key=lambda one: (-lost[one], one))
    measure, unit = MEASURES[name]
    start = f"from {_value(before.facts[name], unit)} " if name in before.facts else ""
    shown_unit = f" {unit}" if unit not in {"", YES_OR_NO} else ""
    reason = f"this changed {start}to {_value(now.facts[name], unit)}{shown_unit}: {measure}"
    weight = scores[polarity].parts(now.facts).get(name, 0.0)
    return FlagWithdrawal(reason=reason, evidence=(fact_evidence(now, name, weight),))


def _value(value: float, unit: str) -> str:
    if unit == YES_OR_NO:
        return "yes" if value else "no"
    return f"{round(value, 2):g}"
