"""Fuse the evidence on each unit into one flag, and limit floods."""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import attrgetter
from typing import Protocol

from pydantic import Field, field_validator

from norm_core.records.flag import Attribute, Evidence, Failure, FlagState, Polarity, Severity, SocialFlag, Tier
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.config import LIVE, NAMES_FILE, Config
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, s_to_ns
from norm_monitor.assessment.explanation import (
    FlagWithdrawal,
    cited_facts,
    correction_of,
    cue_of,
    explain_withdrawal,
    least_severity,
    note_of,
)
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.site_thresholds import SiteThresholds
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_evidence import FACTS, JUDGE, Cite, UnitEvidence
from norm_monitor.assessment.unit_facts import TIMED_FACTS, MeasuredUnit
from norm_monitor.assessment.unit_model import AdditiveScore, KindModel, OperatingPoint, Sensitivity, UnitModel
from norm_monitor.assessment.weighing import Assessment, counted_judgement, weigh

# The minimum probability of a flag, by polarity and attribute.
Thresholds = dict[tuple[Polarity, Attribute], float]
# The period of the limit per attribute.
RATE_PERIOD_NS = 600 * NS_PER_S
# Units that consist of timing alone.
_TIMED_KINDS = frozenset({UnitKind.SILENCE, UnitKind.PERSON_TURN})
# Sightings that compare the times of two sources.
_TIMED_SIGHTINGS = frozenset({"ignores_looking_away", "ignores_leaving"})
# A unit whose end was never seen counts as ended so long after its onset.
LONGEST_UNIT_NS = 300 * NS_PER_S


class FusionConfig(Config):
    """Which evidence becomes a flag, and how long a unit takes evidence."""

    sensitivity: Sensitivity = Field(
        default=Sensitivity.BALANCED,
        description="how many false errors an hour are accepted for more true ones: quiet, balanced or keen",
        json_schema_extra=LIVE,
    )
    min_probability: tuple[str, ...] = Field(
        default=(),
        description="the probability from which flags of a polarity or an attribute are raised, such as error=0.8 or "
        "emotions=0.9, in place of that of the sensitivity",
        json_schema_extra=LIVE,
    )
    min_probability_judged: tuple[str, ...] = Field(
        default=(),
        description="as min_probability, for units with an answer of the judge, in place of those of the sensitivity "
        "balanced",
    )
    open_s: float = Field(
        default=30.0, ge=0, le=600, description="how long after its end a unit takes evidence; then its flag closes"
    )
    judge_weight: float = Field(
        default=1.0, ge=0, le=10, description="the weight of the judge's answer beside the cues; 0 ignores it"
    )
    max_per_attribute: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="the most units of one attribute and polarity in ten minutes",
        json_schema_extra=LIVE,
    )
    muted: tuple[str, ...] = Field(
        default=(), description="cues and attributes that raise no flag", json_schema_extra=LIVE
    )
    weights: str = Field(
        default="",
        description="file of fitted weights for the facts of units; empty for the shipped ones",
        json_schema_extra=NAMES_FILE,
    )
    operating_point: str = Field(
        default="",
        description="name or file of a site's own thresholds of errors, in place of those of the sensitivity",
        json_schema_extra=NAMES_FILE,
    )

    @field_validator("min_probability", "min_probability_judged")
    @classmethod
    def _check_thresholds(cls, thresholds: tuple[str, ...]) -> tuple[str, ...]:
        for name, threshold in map(_parse_threshold, thresholds):
            if name not in _THRESHOLD_NAMES or not 0 < threshold <= 1:
                raise ValueError(f"write NAME=PROBABILITY, where NAME is one of {', '.join(_THRESHOLD_NAMES)}")
        return thresholds

    def thresholds_at(
        self, point: OperatingPoint, site: SiteThresholds | None, *, is_judged: bool = False, is_early: bool = False
    ) -> Thresholds:
        """Return the threshold of each polarity and attribute; it depends on the judge's answer and the reaction."""
        judged = self.min_probability_judged if is_judged and self.sensitivity is Sensitivity.BALANCED else ()
        own = dict(map(_parse_threshold, (*judged, *self.min_probability)))

        def threshold(polarity: Polarity, attribute: Attribute) -> float:
            usual = site.threshold(attribute) if site and polarity is Polarity.ERROR else point.threshold(polarity)
            if is_early:
                usual = max(usual, point.threshold(polarity, is_early=True))
            return max(own.get(polarity.value, usual), own.get(attribute.value, 0.0))

        return {key: threshold(*key) for key in product(Polarity, Attribute)}


_THRESHOLD_NAMES = (*(polarity.value for polarity in Polarity), *(attribute.value for attribute in Attribute))


def _parse_threshold(text: str) -> tuple[str, float]:
    name, _, threshold = text.partition("=")
    try:
        return name.strip(), float(threshold)
    except ValueError:
        return "", 0.0


@record
class _Published:
    """The published flag of a unit, and the evidence for it."""

    flag: SocialFlag | None = None
    essence: tuple[object, ...] = ()  # what of the flag is worth publishing a change of
    sufficed: UnitEvidence | None = None  # what last sufficed for a flag
    sufficed_by: Cite = Provenance
    over_limit: bool = False
    decided_at: int = -1  # the count of changes to other units and settings at the last decision

    @property
    def stands(self) -> bool:
        """Whether there is a flag that was not withdrawn."""
        return self.flag is not None and self.flag.state is not FlagState.WITHDRAWN


@dataclass
class _OpenUnit:
    """A unit that takes evidence: what is known of it, and what was published."""

    evidence: UnitEvidence
    published: _Published = field(default_factory=_Published)

    @property
    def unit(self) -> Unit:
        """The unit, with its end as far as that is known."""
        return self.evidence.unit

    @property
    def end_ns(self) -> int:
        """When the unit ended, or is taken to have ended at the latest."""
        return self.unit.onset_ns + LONGEST_UNIT_NS if self.unit.offset_ns is None else self.unit.offset_ns

    @property
    def onset(self) -> tuple[int, str]:
        """The order of units."""
        return self.unit.onset_ns, self.unit.unit_id


@record
class _Decision:
    """A flag that the evidence suffices for, and what words it."""

    assessment: Assessment
    attributes: tuple[Attribute, ...]
    support: tuple[Reason, ...]  # all that cues say for it, the one that words it first
    reason: Reason | None  # None for the judge alone
    cite: Cite

    @property
    def severity(self) -> Severity:
        """The highest that any cue states."""
        least = least_severity(self.assessment.polarity)
        return max((reason.severity for reason in self.support), key=list(Severity).index, default=least)

    @property
    def tier(self) -> Tier:
        """Whose evidence speaks for it."""
        if not self.assessment.judgement:
            return Tier.CUE
        return Tier.FUSED if self.support or self.assessment.facts_support else Tier.JUDGE

    def essence(self, unit: Unit) -> tuple[object, ...]:
        """Return what of its flag is worth publishing a change of."""
        assessment, cue_id = self.assessment, self.reason.cue_id if self.reason else ""
        stated = assessment.polarity, frozenset(self.attributes), self.severity, self.tier, cue_id
        return *stated, round(assessment.probability, 2), unit.offset_ns is not None


class _RateLimit:
    """The flagged units of each polarity and attribute, and whether another one would be too many."""

    def __init__(self) -> None:
        self._onsets: dict[tuple[Polarity, Attribute], dict[str, int]] = {}

    def is_reached(self, flag: SocialFlag, unit: Unit, max_units: int) -> bool:
        """Whether an attribute of the flag has had too many other units lately."""
        since_ns = unit.onset_ns - RATE_PERIOD_NS
        return any(
            sum(at_ns >= since_ns and unit_id != unit.unit_id for unit_id, at_ns in onsets.items()) >= max_units
            for onsets in (self._onsets.get((flag.polarity, attribute), {}) for attribute in flag.attributes)
        )

    def count(self, flag: SocialFlag, unit: Unit) -> None:
        """Count a unit that is flagged, and forget those of before the period."""
        since_ns = unit.onset_ns - RATE_PERIOD_NS
        for key in ((flag.polarity, attribute) for attribute in flag.attributes):
            lately = {unit_id: at_ns for unit_id, at_ns in self._onsets.get(key, {}).items() if at_ns >= since_ns}
            self._onsets[key] = {**lately, unit.unit_id: unit.onset_ns}


NoteClosed = Callable[[UnitEvidence], None]


class FindReasons(Protocol):
    """Find the cues' reasons for a flag of a unit."""

    def __call__(self, unit: Unit, *, without_timing: bool = False) -> Sequence[Reason]:
        """Return the reasons for either polarity, the best first."""


def _no_reasons(unit: Unit, *, without_timing: bool = False) -> Sequence[Reason]:
    return ()


class Fusion:
    """Turn evidence into flags; all times are stamps.

    The stages, a method each:

    1. `take`, `take_facts`, `take_judgement` and `track` add evidence to its unit; `hold_timing` and `reconfigure`
       change which of it counts.
    2. `_assess` computes one probability from a unit's evidence, and `_decide` whether that suffices for a flag.
       Both only read. `find_reasons` supplies the wording of the flag; it decides nothing.
    3. `_update_flag` compares the decision with the flag as published: it opens (`_open_flag`, within the limit of
       flags), updates or withdraws it (`_withdraw`). Only this stage writes states and counters.
    4. `_flag_of` puts the flag together: its evidence, its explanation, its provenance.
    5. `close` ends a unit, and its flag with it.

    A flag opens once its unit is probable enough for the sensitivity, and changes with the evidence. It closes when
    the unit takes no more evidence, and is withdrawn once the evidence no longer suffices. The error of a silence,
    however, stays until somebody speaks. A closed flag depends on its unit's evidence, not on the order of arrival.
    """

    def __init__(
        self,
        config: FusionConfig,
        model: UnitModel,
        note_closed: NoteClosed | None = None,
        site: SiteThresholds | None = None,
        find_reasons: FindReasons = _no_reasons,
    ) -> None:
        self._model, self._note_closed, self._site, self._find_reasons = model, note_closed, site, find_reasons
        self._tally: Tally[str] = Tally()
        self._changes = 0  # of what other units and the settings contribute to a decision
        self.reset()
        self.reconfigure(config, 0)

    def reset(self) -> None:
        """Forget all units, for example when stamps jump back."""
        self._open: dict[str, _OpenUnit] = {}
        self._closed_until_ns = BEFORE_ALL_NS
        self._holds_timing = False
        self._timed_from_ns = BEFORE_ALL_NS  # units that began earlier did so while clocks lay apart
        self._rate = _RateLimit()

    def reconfigure(self, config: FusionConfig, decision_ns: int) -> list[SocialFlag]:
        """Decide by another configuration from now on; return the flags of open units that this changes."""
        self._changes += 1
        point = self._model.operating_points[config.sensitivity]
        self._config, self._thresholds = config, config.thresholds_at(point, self._site)
        self._judged_thresholds = config.thresholds_at(point, self._site, is_judged=True)
        self._early_thresholds = config.thresholds_at(point, self._site, is_early=True)
        return self._update_flags(decision_ns)

    def hold_timing(self, holds: bool, at_ns: int, decision_ns: int) -> list[SocialFlag]:
        """Use no evidence of timing while clocks lie apart, nor of units that began then; return what this changes."""
        if not holds and self._holds_timing:
            self._timed_from_ns = at_ns
        self._changes += holds != self._holds_timing
        begins, self._holds_timing = holds and not self._holds_timing, holds
        if not begins:
            return []
        for open_unit in self._open.values():
            evidence, unit = open_unit.evidence, open_unit.unit
            counted = tuple(finding for finding in evidence.findings if self._may_count(unit, finding.cue_id))
            judgement = None if unit.kind in _TIMED_KINDS else evidence.judgement
            open_unit.evidence = replace(evidence, findings=counted, judgement=judgement)
            if evidence.measured:
                self._measure(open_unit, evidence.measured, evidence.citation_of(FACTS))
        return self._update_flags(decision_ns)

    def _lacks_timing(self, unit: Unit) -> bool:
        return self._holds_timing or unit.onset_ns < self._timed_from_ns

    def _may_count(self, unit: Unit, cue_id: str = "") -> bool:
        """Whether evidence on a unit counts: not that of timing while clocks lie apart."""
        return not self._lacks_timing(unit) or not (cue_id in _TIMED_SIGHTINGS or unit.kind in _TIMED_KINDS)

    def _measure(self, open_unit: _OpenUnit, measured: MeasuredUnit, cite: Cite) -> None:
        if self._lacks_timing(open_unit.unit):
            measured = replace(measured, facts={k: v for k, v in measured.facts.items() if k not in TIMED_FACTS})
        kind, is_early = measured.unit.kind, not measured.settled
        reading = self._model.read(kind, measured.facts, is_early=is_early) if self._may_count(open_unit.unit) else None
        made_by = {**open_unit.evidence.made_by, FACTS: cite}
        open_unit.evidence = replace(open_unit.evidence, measured=measured, reading=reading, made_by=made_by)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Flags that were opened and withdrawn, and findings that were not used, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    @property
    def oldest_open_ns(self) -> int | None:
        """The onset of the oldest unit whose end is unknown."""
        return min(
            (open_unit.unit.onset_ns for open_unit in self._open.values() if open_unit.unit.offset_ns is None),
            default=None,
        )

    @property
    def findings(self) -> list[Finding]:
        """What cues found in the units that take evidence."""
        return [finding for open_unit in self._open.values() for finding in open_unit.evidence.findings]

    def change_by_judge(self, unit: Unit) -> float:
        """Return how likely a judge that is right changes whether a unit is flagged; of a new unit, a priori."""
        open_unit = self._open.get(unit.unit_id) or _OpenUnit(UnitEvidence(unit=unit))
        if open_unit.evidence.reading is None and self._may_count(unit):
            open_unit = _OpenUnit(replace(open_unit.evidence, reading=self._model.read(unit.kind, {})))
        assessment = self._assess(open_unit.evidence)
        return 1 - assessment.probability if self._decide(open_unit.evidence) else sum(assessment.likely.values())

    def is_closed(self, unit: Unit) -> bool:
        """Whether a unit takes no more evidence."""
        is_over = unit.offset_ns is not None and unit.offset_ns < self._closed_until_ns
        return is_over and unit.unit_id not in self._open

    def take(self, finding: Finding, cite: Cite, decision_ns: int) -> SocialFlag | None:
        """Add a cue's finding to its unit, and return the unit's flag if that changes it."""
        open_unit = self._open.get(finding.unit.unit_id)
        is_new = open_unit is None or all(other.key != finding.key for other in open_unit.evidence.findings)
        if is_new and self.is_closed(finding.unit):
            self._tally["findings_after_close"] += 1
            return None
        if not self._may_count(finding.unit, finding.cue_id):
            self._tally["findings_without_timing"] += 1
            return None
        cite()  # a finding cites its window, whether it is flagged or not
        open_unit = self._open_unit_of(finding.unit)
        open_unit.evidence = open_unit.evidence.with_finding(finding, cite)
        return self._update_flag(open_unit, decision_ns)

    def take_facts(self, measured: MeasuredUnit, cite: Cite, decision_ns: int) -> SocialFlag | None:
        """Replace what is known of a unit, and return the unit's flag if that changes it."""
        if self.is_closed(measured.unit) or not self._may_count(measured.unit):
            return None  # what is measured of a unit changes as long as a window shows it
        state_before = self._open.get(measured.unit.unit_id)
        unit_before = state_before and state_before.unit
        open_unit = self._open_unit_of(measured.unit)
        before = open_unit.evidence.measured
        if not measured.settled:
            if open_unit.evidence.early or before:
                return None
            open_unit.evidence = replace(open_unit.evidence, early=measured)
            if not self._model.kind_model(measured.unit.kind, is_early=True):
                return None
        if before is None or before.facts != measured.facts or before.settled != measured.settled:
            self._measure(open_unit, measured, cite)
        elif open_unit.unit == unit_before and open_unit.published.decided_at == self._changes:
            return None  # the decision would be the same
        return None if self._only_lasts(open_unit) else self._update_flag(open_unit, decision_ns)

    def take_judgement(self, judgement: UnitJudgement, cite: Cite, decision_ns: int) -> list[SocialFlag]:
        """Add the judge's answer to its unit, and return the flags of the incident that this changes."""
        if self.is_closed(judgement.unit):
            self._tally["judgements_after_close"] += 1
            return []
        if not self._may_count(judgement.unit):
            return []
        open_unit = self._open_unit_of(judgement.unit)
        made_by = {**open_unit.evidence.made_by, JUDGE: cite}
        open_unit.evidence = replace(open_unit.evidence, judgement=judgement, made_by=made_by)
        self._changes += 1
        incident = (open_unit, *(other for other in self._open.values() if other.unit.is_ended_by(open_unit.unit)))
        return [flag for flag in (self._update_flag(open_unit, decision_ns) for open_unit in incident) if flag]

    def _counted_judgement(self, evidence: UnitEvidence) -> UnitJudgement | None:
        judged = ((other.unit, other.evidence.judgement) for other in self._open.values())
        return counted_judgement(evidence.unit, evidence.judgement, judged)

    def take_note(self, judgement: UnitJudgement) -> SocialFlag | None:
        """Give the judge's answer its note, which decides nothing, and return the unit's flag if it has one."""
        open_unit = self._open.get(judgement.unit.unit_id)
        if open_unit is None or open_unit.evidence.judgement is None:
            return None
        open_unit.evidence = replace(open_unit.evidence, judgement=judgement)
        self._changes += 1
        decision, before = self._decide(open_unit.evidence), open_unit.published
        if decision is None or before.flag is None or not before.stands:
            return None
        flag = self._flag_of(open_unit, decision, FlagState.UPDATED, before.flag.decision_ns)
        open_unit.published = replace(
            before, flag=flag, sufficed=open_unit.evidence, essence=decision.essence(open_unit.unit)
        )
        return flag

    def is_open(self, unit: Unit) -> bool:
        """Whether a unit takes evidence and has some."""
        return unit.unit_id in self._open

    def is_flagged_by_judge(self, unit: Unit) -> bool:
        """Whether a unit has a flag to which the judge's answer leads."""
        open_unit = self._open.get(unit.unit_id)
        flag = open_unit.published.flag if open_unit and open_unit.published.stands else None
        return bool(flag and flag.tier is not Tier.CUE)

    def track(self, units: Iterable[Unit], decision_ns: int) -> list[SocialFlag]:
        """Record the ends of units; return the flags that this changes."""
        flags = []
        for unit in units:
            open_unit = self._open.get(unit.unit_id)
            if open_unit and open_unit.unit.offset_ns is None and unit.offset_ns is not None:
                open_unit.evidence = replace(open_unit.evidence, unit=unit)
                if flag := self._update_flag(open_unit, decision_ns):
                    flags.append(flag)
        return flags

    def close(self, until_ns: int | None, unanswered: Collection[str] = ()) -> list[SocialFlag]:
        """Close the units that take no more evidence at `until_ns`, or all; return their final flags.

        Those of which the judge still owes an answer, by their ids, stand outside parity.
        """
        if until_ns is not None:
            self._closed_until_ns = max(self._closed_until_ns, until_ns - s_to_ns(self._config.open_s))
        ended = [
            open_unit
            for open_unit in self._open.values()
            if until_ns is None or open_unit.end_ns < self._closed_until_ns
        ]
        self._changes += bool(ended)
        flags = []
        for open_unit in sorted(ended, key=attrgetter("onset")):
            del self._open[open_unit.unit.unit_id]
            if self._note_closed:
                self._note_closed(
                    replace(open_unit.evidence, measured=None) if open_unit.evidence.is_early else open_unit.evidence
                )
            if open_unit.published.flag is None:
                continue
            at_ns = open_unit.published.flag.decision_ns  # closing decides nothing new
            decision = self._decide(open_unit.evidence)
            flag = (
                self._flag_of(open_unit, decision, FlagState.CLOSED, at_ns)
                if decision
                else self._withdraw(open_unit, at_ns)
            )
            if flag and open_unit.unit.unit_id in unanswered:
                flag = replace(flag, provenance=replace(flag.provenance, window_late=True))
            flags += [flag] if flag else []
        return flags

    def _open_unit_of(self, unit: Unit) -> _OpenUnit:
        open_unit = self._open.setdefault(unit.unit_id, _OpenUnit(UnitEvidence(unit=unit)))
        open_unit.evidence = open_unit.evidence.with_end_of(unit)
        return open_unit

    def _only_lasts(self, open_unit: _OpenUnit) -> bool:
        """Whether an error would be withdrawn for no other reason than that a silence goes on."""
        before, unit = open_unit.published.flag, open_unit.unit
        if before is None or not open_unit.published.stands or before.polarity is not Polarity.ERROR:
            return False
        if unit.kind is not UnitKind.SILENCE or unit.offset_ns is not None:
            return False
        decision = self._decide(open_unit.evidence)
        return decision is None or decision.assessment.polarity is not before.polarity

    def _update_flags(self, decision_ns: int) -> list[SocialFlag]:
        """Return the flags of open units that a change of what counts changes."""
        changed = [
            self._update_flag(open_unit, decision_ns)
            for open_unit in sorted(self._open.values(), key=attrgetter("onset"))
        ]
        return [flag for flag in changed if flag]

    def _update_flag(self, open_unit: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Return the flag to publish after a change of the evidence, or None if nothing that matters changed."""
        decision, before = self._decide(open_unit.evidence), open_unit.published
        open_unit.published = replace(before, decided_at=self._changes)
        if decision is None:
            return self._withdraw(open_unit, decision_ns)
        open_unit.published = replace(
            open_unit.published,
            sufficed=open_unit.evidence,
            sufficed_by=decision.cite,
            essence=decision.essence(open_unit.unit),
        )
        if before.stands and before.essence == open_unit.published.essence:
            decision.cite()  # the window is cited all the same
            return None
        flag = self._flag_of(open_unit, decision, FlagState.UPDATED, decision_ns)
        if before.flag is None:
            return self._open_flag(open_unit, flag)
        open_unit.published = replace(open_unit.published, flag=flag)
        return flag

    def _open_flag(self, open_unit: _OpenUnit, flag: SocialFlag) -> SocialFlag | None:
        """Open a flag, unless its attributes have had too many; a unit over the limit stays without."""
        if open_unit.published.over_limit:
            return None
        if self._rate.is_reached(flag, open_unit.unit, self._config.max_per_attribute):
            self._tally["events_over_rate_limit"] += 1
            open_unit.published = replace(open_unit.published, over_limit=True)
            return None
        self._rate.count(flag, open_unit.unit)
        self._tally["events_opened"] += 1
        opened = replace(flag, state=FlagState.OPENED)
        open_unit.published = replace(open_unit.published, flag=opened)
        return opened

    def _withdraw(self, open_unit: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Withdraw the flag of a unit whose evidence no longer suffices, if it has one, and say what changed."""
        before, evidence = open_unit.published, open_unit.evidence
        if before.flag is None or not before.stands:
            return None
        self._tally["events_withdrawn"] += 1
        polarity = before.flag.polarity
        if self._lacks_timing(open_unit.unit):
            why = FlagWithdrawal(reason="the clocks of its sources lie apart")
        else:
            model = self._kind_model(evidence)
            why = explain_withdrawal(before.sufficed or evidence, evidence, polarity, model.polarities if model else {})
        flag = replace(
            before.flag,
            stamp_ns=decision_ns,
            decision_ns=decision_ns,
            state=FlagState.WITHDRAWN,
            probability=self._assess(evidence).likely[polarity],
            base_log_odds=None,  # the evidence is what changed, not what adds up
            evidence=why.evidence or before.flag.evidence,
            rationale=f"Withdrawn, as {why.reason}.",
            provenance=before.sufficed_by(),
        )
        open_unit.published = replace(before, flag=flag)
        return flag

    def _assess(self, evidence: UnitEvidence) -> Assessment:
        muted = self._config.muted
        findings = self._model.counted(evidence.unit.kind, evidence.findings)
        findings = [finding for finding in findings if not (finding.probability and finding.cue_id in muted)]
        reading = evidence.reading
        if reading:
            odds = {candidate: odds for candidate, odds in reading.odds.items() if self._score_of(evidence, candidate)}
            reading = replace(reading, odds=odds)
        return weigh(findings, self._counted_judgement(evidence), self._config.judge_weight, reading)

    def _thresholds_of(self, evidence: UnitEvidence) -> Thresholds:
        if self._counted_judgement(evidence):
            return self._judged_thresholds
        return self._early_thresholds if evidence.is_early else self._thresholds

    def _kind_model(self, evidence: UnitEvidence) -> KindModel | None:
        """Return the weights by which the facts of a unit are weighed; None where they are not."""
        return self._model.kind_model(evidence.unit.kind, is_early=evidence.is_early) if evidence.reading else None

    def _decide(self, evidence: UnitEvidence) -> _Decision | None:
        """Return what the evidence suffices for, or None if it does not suffice for a flag."""
        muted, assessment, thresholds = self._config.muted, self._assess(evidence), self._thresholds_of(evidence)
        attributes = tuple(
            attribute
            for attribute in assessment.attributes
            if attribute not in muted and assessment.probability >= thresholds[assessment.polarity, attribute]
        )
        if not attributes:
            return None
        decision = self._word_decision(evidence, assessment, attributes)
        is_muted = decision.reason is not None and decision.reason.cue_id in muted
        return None if is_muted and not assessment.judgement else decision

    def _word_decision(
        self, evidence: UnitEvidence, assessment: Assessment, attributes: tuple[Attribute, ...]
    ) -> _Decision:
        """Choose what words a flag: the best that cues say of the same attributes, else what the facts amount to."""
        reasons = self._find_reasons(evidence.unit, without_timing=self._lacks_timing(evidence.unit))
        support = (
            *(finding for finding in assessment.support if finding.probability),
            *(reason for reason in reasons if reason.polarity is assessment.polarity),
            *(finding for finding in assessment.support if not finding.probability),
        )
        named = set(assessment.attributes)
        reason = next((reason for reason in support if _is_stated(reason) or named & set(reason.attributes)), None)
        part = reason.key if isinstance(reason, Finding) and not evidence.reading else FACTS
        decision = _Decision(
            assessment=assessment,
            attributes=attributes,
            support=support,
            reason=reason,
            cite=evidence.citation_of(JUDGE if assessment.judgement else part),
        )
        if reason is None and decision.tier is not Tier.JUDGE and evidence.measured:
            return replace(decision, reason=note_of(evidence.measured, assessment.polarity, attributes))
        return decision

    def _flag_of(
        self, open_unit: _OpenUnit, decision: _Decision, flag_state: FlagState, decision_ns: int
    ) -> SocialFlag:
        """Return the flag of a decision, with its evidence, explanation and provenance."""
        unit, assessment, reason = open_unit.unit, decision.assessment, decision.reason
        score = self._score_of(open_unit.evidence, assessment.polarity)
        notes = [note for note in (assessment.judgement, reason) if note]
        corrections = [note.correction for note in notes]
        if assessment.polarity is Polarity.ERROR:  # the judge may have written none
            corrections.append(correction_of(unit.kind, decision.attributes[0]))
        thresholds = self._thresholds_of(open_unit.evidence)
        return SocialFlag(
            stamp_ns=decision_ns,
            event_id=unit.event_id,
            state=flag_state,
            polarity=assessment.polarity,
            attributes=decision.attributes,
            failure=reason.failure if reason else Failure.SOCIAL,
            severity=decision.severity,
            probability=assessment.probability,
            least_probability=min(thresholds[assessment.polarity, attribute] for attribute in decision.attributes),
            base_log_odds=score.intercept if score else 0.0,
            onset_ns=unit.onset_ns,
            offset_ns=unit.offset_ns if flag_state is not FlagState.CLOSED else open_unit.end_ns,
            decision_ns=decision_ns,
            tier=decision.tier,
            cue_id=reason.cue_id if reason else "",
            person_id=unit.person_id,
            evidence=self._evidence(open_unit.evidence, decision),
            rationale=next((note.rationale for note in notes if note.rationale), ""),
            correction=next(filter(None, corrections), ""),
            provenance=decision.cite(),
        )

    def _evidence(self, evidence: UnitEvidence, decision: _Decision) -> tuple[Evidence, ...]:
        """Return the measured facts, each once: of the cues, of what weighed most, and of the judge."""
        assessment = decision.assessment
        facts = [fact for reason in decision.support for fact in reason.evidence]
        if evidence.measured and (score := self._score_of(evidence, assessment.polarity)):
            facts += cited_facts(evidence.measured, score)
        onset_ns, end_ns = evidence.unit.onset_ns, evidence.unit.offset_ns
        steps = [step.evidence(onset_ns, onset_ns if end_ns is None else end_ns) for step in assessment.steps]
        weights = {step.measure: step.weight for step in steps}
        judged = assessment.judgement.evidence if assessment.judgement else ()
        facts += [replace(fact, weight=weights.get(fact.measure, fact.weight)) for fact in judged]
        judged_measures = {fact.measure for fact in judged}
        facts += [step for step in steps if step.measure not in judged_measures]
        return tuple(dict.fromkeys(facts))

    def _score_of(self, evidence: UnitEvidence, polarity: Polarity) -> AdditiveScore | None:
        """Return the score by which the facts of a unit are weighed; None where they are not."""
        model = None if cue_of(evidence.unit.kind, polarity) in self._config.muted else self._kind_model(evidence)
        return model.polarities.get(polarity) if model else None


def _is_stated(reason: Reason) -> bool:
    """Whether a cue states how probable it is."""
    return isinstance(reason, Finding) and bool(reason.probability)
