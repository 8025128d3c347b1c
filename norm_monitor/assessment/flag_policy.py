"""Decide whether the evidence on a unit suffices for a flag, and put the flag together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from norm_core.records.flag import Attribute, Evidence, Failure, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.record import record
from norm_monitor.assessment.explanation import (
    cited_facts,
    cue_of,
    default_severity,
    note_of,
    word_correction,
)
from norm_monitor.assessment.finding import Reason
from norm_monitor.assessment.fusion_config import FusionConfig, Thresholds
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.assessment.unit_evidence import FACTS, JUDGE, Cite, UnitEvidence
from norm_monitor.assessment.unit_model import AdditiveScore, UnitModel, is_slow
from norm_monitor.assessment.weighing import Assessment, weigh

# Return the reasons of the cues for a flag of either polarity, the best first.
FindReasons = Callable[[], Sequence[Reason]]


@record
class FlagDecision:
    """A flag for which the evidence suffices, with its wording."""

    evidence: UnitEvidence
    assessment: Assessment
    score: AdditiveScore | None  # of the unit's facts; None where they are not weighed
    attributes: tuple[Attribute, ...]
    threshold: float
    support: tuple[Reason, ...]  # every reason of a cue for it
    reason: Reason | None  # the one that words it; None for the judge alone
    cite: Cite

    @property
    def severity(self) -> Severity:
        """The highest severity that a cue states, else the usual one of the polarity."""
        default = default_severity(self.assessment.polarity)
        return max((reason.severity for reason in self.support), key=list(Severity).index, default=default)

    @property
    def tier(self) -> Tier:
        """Whether cues, the judge or both support it."""
        if not self.assessment.judgement:
            return Tier.CUE
        return Tier.FUSED if self.support or self.assessment.facts_support else Tier.JUDGE

    @property
    def visible_state(self) -> tuple[object, ...]:
        """The part of the flag whose change is published."""
        cue_id = self.reason.cue_id if self.reason else ""
        wording = self.assessment.polarity, frozenset(self.attributes), self.severity, self.tier, cue_id
        return *wording, round(self.assessment.probability, 2), self.evidence.unit.offset_ns is not None

    def make_flag(self, state: FlagState, decision_ns: int) -> SocialFlag:
        """Return the flag with its evidence, explanation and provenance."""
        unit, assessment, reason = self.evidence.unit, self.assessment, self.reason
        notes = [note for note in (assessment.judgement, reason) if note]
        return SocialFlag(
            stamp_ns=decision_ns,
            event_id=unit.event_id,
            state=state,
            polarity=assessment.polarity,
            attributes=self.attributes,
            failure=reason.failure if reason else Failure.SOCIAL,
            severity=self.severity,
            probability=assessment.probability,
            threshold=self.threshold,
            base_log_odds=self.score.intercept if self.score else 0.0,
            onset_ns=unit.onset_ns,
            offset_ns=unit.latest_end_ns if state is FlagState.CLOSED else unit.offset_ns,
            decision_ns=decision_ns,
            tier=self.tier,
            cue_id=reason.cue_id if reason else "",
            person_id=unit.person_id,
            evidence=self._collect_evidence(),
            rationale=next((note.rationale for note in notes if note.rationale), ""),
            correction=self._choose_correction(),
            provenance=self.cite(),
        )

    def _choose_correction(self) -> str:
        """Return the judge's advice, or that of the words, the reason or what happened."""
        judgement, reason, measured = self.assessment.judgement, self.reason, self.evidence.measured
        if (judgement and judgement.correction) or self.assessment.polarity is not Polarity.ERROR:
            return judgement.correction if judgement else ""
        return word_correction(self.evidence.unit.kind, self.attributes, measured, reason)

    def _collect_evidence(self) -> tuple[Evidence, ...]:
        """Return what cues measured, the facts that weigh most, and the judge's evidence, without duplicates."""
        unit, judgement = self.evidence.unit, self.assessment.judgement
        cited = [evidence for reason in self.support for evidence in reason.evidence]
        if self.evidence.measured and self.score:
            cited += cited_facts(self.evidence.measured, self.score)
        end_ns = unit.onset_ns if unit.offset_ns is None else unit.offset_ns
        steps = [step.evidence(unit.onset_ns, end_ns) for step in self.assessment.steps]
        weights = {step.measure: step.weight for step in steps}
        judged = judgement.evidence if judgement else ()
        cited += [replace(evidence, weight=weights.get(evidence.measure, evidence.weight)) for evidence in judged]
        judged_measures = {evidence.measure for evidence in judged}
        cited += [step for step in steps if step.measure not in judged_measures]
        return tuple(dict.fromkeys(cited))


class FlagPolicy:
    """Decide about flags by one configuration. A policy holds no state: `Fusion` holds what is known of units."""

    def __init__(self, config: FusionConfig, model: UnitModel) -> None:
        point = model.operating_points[config.sensitivity]
        self._config, self._model = config, model
        self._thresholds = config.thresholds_at(point)
        self._judged_thresholds = config.thresholds_at(point, is_judged=True)
        self._early_thresholds = config.thresholds_at(point, is_early=True)
        self._slow_thresholds = config.thresholds_at(point, is_slow=True)

    def assess(self, evidence: UnitEvidence, judgement: UnitJudgement | None) -> Assessment:
        """Compute the probabilities of a unit, without what is muted."""
        muted = self._config.muted
        reading = evidence.reading
        findings = self._model.counted(evidence.unit.kind, evidence.findings)
        findings = [finding for finding in findings if not (finding.probability and finding.reason.cue_id in muted)]
        if reading:
            is_weighed = {polarity: self._find_score(evidence, polarity) is not None for polarity in reading.odds}
            odds = {polarity: value for polarity, value in reading.odds.items() if is_weighed[polarity]}
            reading = replace(reading, odds=odds)
        return weigh(findings, judgement, self._config.judge_weight, reading)

    def decide(
        self, evidence: UnitEvidence, judgement: UnitJudgement | None, find_reasons: FindReasons
    ) -> FlagDecision | None:
        """Return the flag for which the evidence suffices, or None. Reasons are searched only for a flag."""
        muted = self._config.muted
        assessment = self.assess(evidence, judgement)
        by_key = self._choose_thresholds(evidence, judgement)
        thresholds = {
            attribute: threshold
            for attribute in assessment.attributes
            if attribute not in muted
            and assessment.probability >= (threshold := by_key[assessment.polarity, attribute])
        }
        if not thresholds:
            return None
        support, reason = _choose_wording(assessment, find_reasons())
        worded_by = next((finding for finding in assessment.support if finding.reason is reason), None)
        part = worded_by.key if worded_by and not evidence.reading else FACTS
        decision = FlagDecision(
            evidence=evidence,
            assessment=assessment,
            score=self._find_score(evidence, assessment.polarity),
            attributes=tuple(thresholds),
            threshold=min(thresholds.values()),
            support=support,
            reason=reason,
            cite=evidence.citation_of(JUDGE if assessment.judgement else part),
        )
        if reason is None and decision.tier is not Tier.JUDGE and evidence.measured:
            note = note_of(evidence.measured, assessment.polarity, decision.attributes)
            decision = replace(decision, reason=note)
        is_muted = decision.reason is not None and decision.reason.cue_id in muted
        return None if is_muted and not assessment.judgement else decision

    def find_scores(self, evidence: UnitEvidence) -> Mapping[Polarity, AdditiveScore]:
        """Return the scores that weigh the facts of a unit; none where they are not weighed."""
        facts = evidence.measured.facts if evidence.measured else {}
        kind_model = self._model.kind_model(evidence.unit.kind, facts, is_early=evidence.is_early)
        return kind_model.polarities if kind_model and evidence.reading else {}

    def _find_score(self, evidence: UnitEvidence, polarity: Polarity) -> AdditiveScore | None:
        """Return the score of a polarity, unless the cue of its flags is muted."""
        is_muted = cue_of(evidence.unit.kind, polarity) in self._config.muted
        return None if is_muted else self.find_scores(evidence).get(polarity)

    def _choose_thresholds(self, evidence: UnitEvidence, judgement: UnitJudgement | None) -> Thresholds:
        """Return the thresholds of a unit: judged, of a slow robot, without a reaction yet, or any other."""
        if judgement:
            return self._judged_thresholds
        if evidence.measured and is_slow(evidence.unit.kind, evidence.measured.facts):
            return self._slow_thresholds
        return self._early_thresholds if evidence.is_early else self._thresholds


def _choose_wording(assessment: Assessment, reasons: Sequence[Reason]) -> tuple[tuple[Reason, ...], Reason | None]:
    """Return every reason for the likelier polarity, and the first that states a probability or shares an attribute."""
    stated = [finding.reason for finding in assessment.support if finding.probability]
    others = [reason for reason in reasons if reason.polarity is assessment.polarity]
    others += [finding.reason for finding in assessment.support if not finding.probability]
    about = set(assessment.attributes)
    fitting = (reason for reason in others if about & set(reason.attributes))
    return (*stated, *others), next(iter(stated), None) or next(fitting, None)
