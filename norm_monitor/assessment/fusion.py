"""Fuse the evidence on each unit into one flag, and limit floods."""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from pydantic import Field, field_validator

from norm_core.records.flag import Attribute, Evidence, Failure, FlagState, Polarity, SocialFlag, Tier
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.config import LIVE, NAMES_FILE, Config
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.assessment.explanation import (
    FlagWithdrawal,
    UnitEvidence,
    UnitNote,
    cited_facts,
    correction_of,
    cue_of,
    explain_withdrawal,
    note_of,
)
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.omission_filter import TIMING_CUES
from norm_monitor.assessment.reasons.reactions import REGRETS
from norm_monitor.assessment.site_thresholds import SiteThresholds
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_facts import TIMED_FACTS, MeasuredUnit
from norm_monitor.assessment.unit_model import (
    AdditiveScore,
    KindModel,
    OperatingPoint,
    Sensitivity,
    UnitModel,
    UnitReading,
)
from norm_monitor.assessment.weighing import Assessment, counted_judgement, weigh

# The probability from which a unit is flagged, by polarity and attribute.
Bars = dict[tuple[Polarity, Attribute], float]
# The period of the limit per attribute.
RATE_PERIOD_NS = 600 * NS_PER_S
# Units that are nothing but timing.
_TIMED_KINDS = frozenset({UnitKind.SILENCE, UnitKind.PERSON_TURN})
# A unit whose end was never seen counts as ended so long after its onset.
LONGEST_UNIT_NS = 300 * NS_PER_S


class FusionConfig(Config):
    """Which evidence becomes a flag, and how long a unit takes evidence."""

    sensitivity: Sensitivity = Field(
        default=Sensitivity.BALANCED,
        description="how many false errors an hour are accepted for more true ones: quiet, balanced or keen",
        json_schema_extra=LIVE,
    )
    bars: tuple[str, ...] = Field(
        default=(),
        description="the probability from which flags of a polarity or an attribute are raised, such as error=0.8 or "
        "emotions=0.9, in place of that of the sensitivity",
        json_schema_extra=LIVE,
    )
    judged_bars: tuple[str, ...] = Field(
        default=(),
        description="as bars, for units that the judge answered about, in place of those of the sensitivity balanced",
    )
    open_s: float = Field(
        default=30.0, ge=0, le=600, description="how long after its end a unit takes evidence; then its flag closes"
    )
    judge_weight: float = Field(
        default=1.0, ge=0, le=10, description="the weight of the judge's answer beside the cues; 0 ignores it"
    )
    most_per_attribute: int = Field(
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

    @field_validator("bars", "judged_bars")
    @classmethod
    def _checked(cls, bars: tuple[str, ...]) -> tuple[str, ...]:
        for name, least in map(_bar, bars):
            if name not in _BAR_NAMES or not 0 < least <= 1:
                raise ValueError(f"a bar is NAME=PROBABILITY, where NAME is one of {', '.join(_BAR_NAMES)}")
        return bars

    def bars_at(
        self, point: OperatingPoint, site: SiteThresholds | None, *, is_judged: bool = False, is_early: bool = False
    ) -> Bars:
        """Return the least probability of each polarity and attribute, with the judge's answer or before a reaction."""
        judged = self.judged_bars if is_judged and self.sensitivity is Sensitivity.BALANCED else ()
        own = dict(map(_bar, (*judged, *self.bars)))

        def least(polarity: Polarity, attribute: Attribute) -> float:
            usual = site.bar(attribute) if site and polarity is Polarity.ERROR else point.bar(polarity)
            if is_early:
                usual = max(usual, point.bar(polarity, is_early=True))
            return max(own.get(polarity.value, usual), own.get(attribute.value, 0.0))

        return {(polarity, attribute): least(polarity, attribute) for polarity in Polarity for attribute in Attribute}


_BAR_NAMES = (*(polarity.value for polarity in Polarity), *(attribute.value for attribute in Attribute))


def _bar(text: str) -> tuple[str, float]:
    name, _, least = text.partition("=")
    try:
        return name.strip(), float(least)
    except ValueError:
        return "", 0.0


# Makes the provenance of a flag, by the configuration that holds when the flag changes.
MakeProvenance = Callable[[], Provenance]


@dataclass
class _OpenUnit:
    """A unit that takes evidence, and its flag as last published."""

    unit: Unit
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    found_by: dict[tuple[str, str], MakeProvenance] = field(default_factory=dict)
    measured: MeasuredUnit | None = None
    early: MeasuredUnit | None = None  # as first measured, before any reaction was known
    reading: UnitReading | None = None
    measured_by: MakeProvenance = Provenance
    judgement: UnitJudgement | None = None
    judged_by: MakeProvenance = Provenance
    flag: SocialFlag | None = None
    stated: tuple[object, ...] = ()  # the essence of the flag
    over_limit: bool = False
    # What last sufficed for a flag, and the provenance of that.
    sufficed: UnitEvidence | None = None
    sufficed_by: MakeProvenance = Provenance
    decided_at: int = -1  # the count of changes to other units and settings at the last decision

    @property
    def evidence(self) -> UnitEvidence:
        """What is known of the unit now."""
        return UnitEvidence(measured=self.measured, findings=tuple(self.findings.values()), judgement=self.judgement)

    @property
    def is_early(self) -> bool:
        """Whether it was measured before any reaction was known, and not since."""
        return self.measured is not None and not self.measured.settled

    @property
    def end_ns(self) -> int:
        """When the unit ended, or is taken to have ended at the latest."""
        return self.unit.onset_ns + LONGEST_UNIT_NS if self.unit.offset_ns is None else self.unit.offset_ns


@record
class _Decision:
    """What a unit's evidence suffices for, and what explains it: a finding, a note on the facts, or the judge."""

    assessment: Assessment
    attributes: tuple[Attribute, ...]
    lead: Finding | None
    note: UnitNote | None
    cue_id: str
    make_provenance: MakeProvenance

    def essence(self, unit: Unit) -> tuple[object, ...]:
        """Return what of its flag is worth publishing a change of."""
        assessment = self.assessment
        stated = assessment.polarity, frozenset(self.attributes), assessment.severity, assessment.tier, self.cue_id
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


@record
class ClosedUnit:
    """A unit that takes no more evidence, with all that is known of it; calibration learns from these."""

    unit: Unit
    measured: MeasuredUnit | None  # None if it was never measured
    findings: tuple[Finding, ...]
    early: MeasuredUnit | None = None  # as measured at its end, before any reaction

    def assessment(self, model: UnitModel, judgement: UnitJudgement | None = None, weight: float = 0.0) -> Assessment:
        """Weigh what is known of the unit by a model, without a judge or with it."""
        reading = model.read(self.unit.kind, self.measured.facts) if self.measured else None
        return weigh(model.counted(self.unit.kind, self.findings), judgement, weight, reading)


NoteClosed = Callable[[ClosedUnit], None]


class Fusion:
    """Turn evidence into flags; all times are stamps.

    The stages, a method each:

    1. `take`, `take_facts`, `take_judgement` and `track` add evidence to its unit; `hold_timing` and `reconfigure`
       change what counts of it.
    2. `_weighed` makes one probability of a unit's evidence, and `_decide` decides whether that suffices for a flag.
       Both only read.
    3. `_changed` compares the decision with the flag as published: it opens (`_open_flag`, within the limit of
       flags), updates or withdraws it (`_withdraw`). Here alone are states and counters written.
    4. `_flag_of` words the flag: its evidence, its explanation, its provenance.
    5. `close` ends a unit, and its flag with it.

    A flag opens once its unit is probable enough for the sensitivity, and changes with the evidence. It closes when
    the unit takes no more evidence; it is withdrawn where the evidence no longer suffices, but the error of a silence
    that goes on stays until somebody speaks. A closed flag depends on
    its unit's evidence, and not on the order in which that came.
    """

    def __init__(
        self,
        config: FusionConfig,
        model: UnitModel,
        note_closed: NoteClosed | None = None,
        site: SiteThresholds | None = None,
    ) -> None:
        self._model, self._note_closed, self._site = model, note_closed, site
        self._tally: Tally[str] = Tally()
        self._changes = 0  # of what other units and the settings contribute to a decision
        self.reset()
        self.reconfigure(config, 0)

    def reset(self) -> None:
        """Forget all units, for example when stamps jump back."""
        self._open: dict[str, _OpenUnit] = {}
        self._closed_until_ns = -(2**63)
        self._holds_timing = False
        self._timed_from_ns = -(2**63)  # units that began earlier did so while clocks lay apart
        self._rate = _RateLimit()

    def reconfigure(self, config: FusionConfig, decision_ns: int) -> list[SocialFlag]:
        """Decide by another configuration from now on; return the flags of open units that this changes."""
        self._changes += 1
        point = self._model.operating_points[config.sensitivity]
        self._config, self._bars = config, config.bars_at(point, self._site)
        self._judged_bars = config.bars_at(point, self._site, is_judged=True)
        self._early_bars = config.bars_at(point, self._site, is_early=True)
        return self._changed_flags(decision_ns)

    def hold_timing(self, holds: bool, at_ns: int, decision_ns: int) -> list[SocialFlag]:
        """Use no evidence of timing while clocks lie apart, nor of units that began then; return what this changes."""
        if not holds and self._holds_timing:
            self._timed_from_ns = at_ns
        self._changes += holds != self._holds_timing
        begins, self._holds_timing = holds and not self._holds_timing, holds
        if not begins:
            return []
        for state in self._open.values():
            counted = (item for item in state.findings.items() if self._counts(state.unit, item[1].cue_id))
            state.findings = dict(counted)
            if state.measured:
                self._measure(state, state.measured)
            if state.unit.kind in _TIMED_KINDS:
                state.judgement = None
        return self._changed_flags(decision_ns)

    def _lacks_timing(self, unit: Unit) -> bool:
        return self._holds_timing or unit.onset_ns < self._timed_from_ns

    def _counts(self, unit: Unit, cue_id: str = "") -> bool:
        """Whether evidence on a unit counts: not that of timing while clocks lie apart."""
        return not self._lacks_timing(unit) or not (cue_id in TIMING_CUES or unit.kind in _TIMED_KINDS)

    def _measure(self, state: _OpenUnit, measured: MeasuredUnit) -> None:
        if self._lacks_timing(state.unit):
            measured = replace(measured, facts={k: v for k, v in measured.facts.items() if k not in TIMED_FACTS})
        state.measured = measured
        counts = self._counts(state.unit)
        kind, facts, is_early = measured.unit.kind, measured.facts, not measured.settled
        state.reading = self._model.read(kind, facts, is_early=is_early) if counts else None

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Flags that were opened and withdrawn, and findings that were not used, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    @property
    def oldest_open_ns(self) -> int | None:
        """The onset of the oldest unit whose end is unknown."""
        return min((state.unit.onset_ns for state in self._open.values() if state.unit.offset_ns is None), default=None)

    def change_by_judge(self, unit: Unit) -> float:
        """Return how likely a judge that is right changes whether a unit is flagged; of a new unit, a priori."""
        state = self._open.get(unit.unit_id) or _OpenUnit(unit)
        if state.reading is None and self._counts(unit):
            state = replace(state, reading=self._model.read(unit.kind, {}))
        assessment = self._weighed(state)
        return 1 - assessment.probability if self._decide(state) else sum(assessment.likely.values())

    def is_closed(self, unit: Unit) -> bool:
        """Whether a unit takes no more evidence."""
        is_over = unit.offset_ns is not None and unit.offset_ns < self._closed_until_ns
        return is_over and unit.unit_id not in self._open

    def take(self, finding: Finding, make_provenance: MakeProvenance, decision_ns: int) -> SocialFlag | None:
        """Add a cue's finding to its unit, and return the unit's flag if that changes it."""
        key = finding.cue_id, finding.anchor
        state = self._open.get(finding.unit.unit_id)
        if (state is None or key not in state.findings) and self.is_closed(finding.unit):
            self._tally["findings_after_close"] += 1
            return None
        if not self._counts(finding.unit, finding.cue_id):
            self._tally["findings_without_timing"] += 1
            return None
        state = self._state_of(finding.unit)
        make_provenance()  # a finding cites its window, whether it is flagged or not
        state.findings[key], state.found_by[key] = finding, make_provenance
        return self._changed(state, decision_ns)

    def take_facts(
        self, measured: MeasuredUnit, make_provenance: MakeProvenance, decision_ns: int
    ) -> SocialFlag | None:
        """Replace what is known of a unit, and return the unit's flag if that changes it."""
        if self.is_closed(measured.unit) or not self._counts(measured.unit):
            return None  # what is measured of a unit changes as long as a window shows it
        known = self._open.get(measured.unit.unit_id)
        unit_before = known and known.unit
        state = self._state_of(measured.unit)
        if not measured.settled:
            if state.early is not None or state.measured is not None:
                return None
            state.early = measured
            if not self._model.kind_model(measured.unit.kind, is_early=True):
                return None
        before = state.measured
        if before is None or before.facts != measured.facts or before.settled != measured.settled:
            self._measure(state, measured)
            state.measured_by = make_provenance
        elif state.unit == unit_before and state.decided_at == self._changes:
            return None  # the decision would be the same
        return None if self._only_lasts(state) else self._changed(state, decision_ns)

    def take_judgement(
        self, judgement: UnitJudgement, make_provenance: MakeProvenance, decision_ns: int
    ) -> list[SocialFlag]:
        """Add the judge's answer to its unit, and return the flags of the incident that this changes."""
        if self.is_closed(judgement.unit):
            self._tally["judgements_after_close"] += 1
            return []
        if not self._counts(judgement.unit):
            return []
        state = self._state_of(judgement.unit)
        state.judgement, state.judged_by = judgement, make_provenance
        self._changes += 1
        incident = (state, *(other for other in self._open.values() if other.unit.is_ended_by(state.unit)))
        return [flag for flag in (self._changed(flag_state, decision_ns) for flag_state in incident) if flag]

    def _counted_judgement(self, state: _OpenUnit) -> UnitJudgement | None:
        judged = ((other.unit, other.judgement) for other in self._open.values())
        return counted_judgement(state.unit, state.judgement, judged)

    def take_note(self, judgement: UnitJudgement) -> SocialFlag | None:
        """Give the judge's answer its note, which decides nothing, and return the unit's flag if it has one."""
        state = self._open.get(judgement.unit.unit_id)
        if state is None or state.judgement is None:
            return None
        state.judgement = judgement
        self._changes += 1
        decision, before = self._decide(state), state.flag
        if decision is None or before is None or before.state is FlagState.WITHDRAWN:
            return None
        state.sufficed, state.stated = state.evidence, decision.essence(state.unit)
        flag = self._flag_of(state, decision, FlagState.UPDATED, before.decision_ns)
        state.flag = flag
        return flag

    def is_open(self, unit: Unit) -> bool:
        """Whether anything is known of a unit that takes evidence."""
        return unit.unit_id in self._open

    def is_flagged_by_judge(self, unit: Unit) -> bool:
        """Whether a unit has a flag to which the judge's answer leads."""
        state = self._open.get(unit.unit_id)
        flag = state.flag if state else None
        return bool(flag and flag.state is not FlagState.WITHDRAWN and flag.tier is not Tier.CUE)

    def track(self, units: Iterable[Unit], decision_ns: int) -> list[SocialFlag]:
        """Tell that units ended; return the flags that this changes."""
        flags = []
        for unit in units:
            state = self._open.get(unit.unit_id)
            if state and state.unit.offset_ns is None and unit.offset_ns is not None:
                state.unit = unit
                if flag := self._changed(state, decision_ns):
                    flags.append(flag)
        return flags

    def close(self, until_ns: int | None, unanswered: Collection[str] = ()) -> list[SocialFlag]:
        """Close the units that take no more evidence at `until_ns`, or all; return their final flags.

        Those of which the judge still owes an answer, by their ids, stand outside parity.
        """
        if until_ns is not None:
            self._closed_until_ns = max(self._closed_until_ns, until_ns - s_to_ns(self._config.open_s))
        ended = [state for state in self._open.values() if until_ns is None or state.end_ns < self._closed_until_ns]
        self._changes += bool(ended)
        flags = []
        for state in sorted(ended, key=_by_onset):
            del self._open[state.unit.unit_id]
            if self._note_closed:
                findings = tuple(state.findings.values())
                measured = state.measured if state.measured and state.measured.settled else None
                self._note_closed(ClosedUnit(unit=state.unit, measured=measured, findings=findings, early=state.early))
            if state.flag is None:
                continue
            at_ns = state.flag.decision_ns  # closing decides nothing new
            decision = self._decide(state)
            flag = self._flag_of(state, decision, FlagState.CLOSED, at_ns) if decision else self._withdraw(state, at_ns)
            if flag and state.unit.unit_id in unanswered:
                flag = replace(flag, provenance=replace(flag.provenance, window_late=True))
            flags += [flag] if flag else []
        return flags

    def _state_of(self, unit: Unit) -> _OpenUnit:
        state = self._open.setdefault(unit.unit_id, _OpenUnit(unit))
        ends_ns = [ended_unit.offset_ns for ended_unit in (state.unit, unit) if ended_unit.offset_ns is not None]
        state.unit = replace(unit, offset_ns=max(ends_ns, default=None))
        return state

    def _only_lasts(self, state: _OpenUnit) -> bool:
        """Whether an error would be withdrawn for no other reason than that a silence goes on."""
        before, unit = state.flag, state.unit
        if before is None or before.state is FlagState.WITHDRAWN or before.polarity is not Polarity.ERROR:
            return False
        if unit.kind is not UnitKind.SILENCE or unit.offset_ns is not None:
            return False
        decision = self._decide(state)
        return decision is None or decision.assessment.polarity is not before.polarity

    def _changed_flags(self, decision_ns: int) -> list[SocialFlag]:
        """Return the flags of open units that a change of what counts changes."""
        changed = [self._changed(state, decision_ns) for state in sorted(self._open.values(), key=_by_onset)]
        return [flag for flag in changed if flag]

    def _changed(self, state: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Return the flag to publish after a change of the evidence, or None if nothing that matters changed."""
        decision, state.decided_at = self._decide(state), self._changes
        if decision is None:
            return self._withdraw(state, decision_ns)
        state.sufficed, state.sufficed_by = state.evidence, decision.make_provenance
        before, stated, state.stated = state.flag, state.stated, decision.essence(state.unit)
        if before and before.state is not FlagState.WITHDRAWN and stated == state.stated:
            decision.make_provenance()  # the window is cited all the same
            return None
        flag = self._flag_of(state, decision, FlagState.UPDATED, decision_ns)
        if before is None:
            return self._open_flag(state, flag)
        state.flag = flag
        return flag

    def _open_flag(self, state: _OpenUnit, flag: SocialFlag) -> SocialFlag | None:
        """Open a flag, unless its attributes have had too many; a unit over the limit stays without."""
        if state.over_limit:
            return None
        if self._rate.is_reached(flag, state.unit, self._config.most_per_attribute):
            self._tally["events_over_rate_limit"] += 1
            state.over_limit = True
            return None
        self._rate.count(flag, state.unit)
        self._tally["events_opened"] += 1
        state.flag = replace(flag, state=FlagState.OPENED)
        return state.flag

    def _withdraw(self, state: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Withdraw the flag of a unit whose evidence no longer suffices, if it has one, and say what changed."""
        before = state.flag
        if before is None or before.state is FlagState.WITHDRAWN:
            return None
        self._tally["events_withdrawn"] += 1
        model = self._kind_model(state)
        scores = model.polarities if model else {}
        if self._lacks_timing(state.unit):
            why = FlagWithdrawal(reason="the clocks of its sources lie apart")
        else:
            why = explain_withdrawal(state.sufficed or state.evidence, state.evidence, before.polarity, scores)
        state.flag = replace(
            before,
            stamp_ns=decision_ns,
            decision_ns=decision_ns,
            state=FlagState.WITHDRAWN,
            probability=self._weighed(state).likely[before.polarity],
            base_log_odds=None,  # the evidence is what changed, not what adds up
            evidence=why.evidence or before.evidence,
            rationale=f"Withdrawn, as {why.reason}.",
            provenance=state.sufficed_by(),
        )
        return state.flag

    def _weighed(self, state: _OpenUnit) -> Assessment:
        muted = self._config.muted
        findings = self._model.counted(state.unit.kind, state.findings.values())
        findings = [finding for finding in findings if not (finding.probability and finding.cue_id in muted)]
        reading = state.reading
        if reading:
            odds = {candidate: odds for candidate, odds in reading.odds.items() if self._score_of(state, candidate)}
            reading = replace(reading, odds=odds)
        return weigh(findings, self._counted_judgement(state), self._config.judge_weight, reading)

    def _bars_of(self, state: _OpenUnit) -> Bars:
        if self._counted_judgement(state):
            return self._judged_bars
        return self._early_bars if state.is_early else self._bars

    def _kind_model(self, state: _OpenUnit) -> KindModel | None:
        """Return the weights by which the facts of a unit are weighed; None where they are not."""
        return self._model.kind_model(state.unit.kind, is_early=state.is_early) if state.reading else None

    def _decide(self, state: _OpenUnit) -> _Decision | None:
        """Return what the evidence suffices for, or None if it does not suffice for a flag."""
        muted, assessment, bars = self._config.muted, self._weighed(state), self._bars_of(state)
        attributes = tuple(
            attribute
            for attribute in assessment.attributes
            if attribute not in muted and assessment.probability >= bars[assessment.polarity, attribute]
        )
        if not attributes:
            return None
        lead, note = self._lead(assessment), None
        if lead is None and assessment.tier is not Tier.JUDGE and state.measured:
            note = note_of(state.measured, assessment.polarity, attributes)
        cue_id = note.cue_id if note else lead.cue_id if lead else ""
        if cue_id in muted and not assessment.judgement:
            return None
        by_cue = state.found_by[lead.cue_id, lead.anchor] if lead and not state.reading else state.measured_by
        return _Decision(
            assessment=assessment,
            attributes=attributes,
            lead=lead,
            note=note,
            cue_id=cue_id,
            make_provenance=state.judged_by if assessment.judgement else by_cue,
        )

    def _flag_of(self, state: _OpenUnit, decision: _Decision, flag_state: FlagState, decision_ns: int) -> SocialFlag:
        """Return the flag of a decision, with its evidence, explanation and provenance."""
        unit, assessment, lead = state.unit, decision.assessment, decision.lead
        score = self._score_of(state, assessment.polarity)
        reasons = [reason for reason in (assessment.judgement, lead, decision.note) if reason]
        corrections = [reason.correction for reason in reasons]
        if assessment.polarity is Polarity.ERROR:  # the judge may have written none
            corrections.append(correction_of(unit.kind, decision.attributes[0]))
        return SocialFlag(
            stamp_ns=decision_ns,
            event_id=unit.event_id,
            state=flag_state,
            polarity=assessment.polarity,
            attributes=decision.attributes,
            failure=lead.failure if lead else Failure.SOCIAL,
            severity=assessment.severity,
            probability=assessment.probability,
            least_probability=min(
                self._bars_of(state)[assessment.polarity, attribute] for attribute in decision.attributes
            ),
            base_log_odds=score.intercept if score else 0.0,
            onset_ns=unit.onset_ns,
            offset_ns=unit.offset_ns if flag_state is not FlagState.CLOSED else state.end_ns,
            decision_ns=decision_ns,
            tier=assessment.tier,
            cue_id=decision.cue_id,
            person_id=unit.person_id,
            evidence=self._evidence(state, assessment),
            rationale=next((reason.rationale for reason in reasons if reason.rationale), ""),
            correction=next(filter(None, corrections), ""),
            provenance=decision.make_provenance(),
        )

    def _lead(self, assessment: Assessment) -> Finding | None:
        """Return the finding that explains the flag: about the same attributes, by the cue that is most often right.

        A later regret explains it only where no other does.
        """
        precision = self._model.cue_precision
        attributes = set(assessment.attributes)
        return min(
            (finding for finding in assessment.support if finding.probability or set(finding.attributes) & attributes),
            key=lambda finding: (
                finding.cue_id in REGRETS,
                -(finding.probability or precision.get(finding.cue_id, 0.0)),
            ),
            default=None,
        )

    def _evidence(self, state: _OpenUnit, assessment: Assessment) -> tuple[Evidence, ...]:
        """Return the measured facts, each once: of the cues, of what weighed most, and of the judge."""
        facts = [fact for finding in assessment.support for fact in finding.evidence]
        if state.measured and (score := self._score_of(state, assessment.polarity)):
            facts += cited_facts(state.measured, score)
        onset_ns, end_ns = state.unit.onset_ns, state.unit.offset_ns
        steps = [step.evidence(onset_ns, onset_ns if end_ns is None else end_ns) for step in assessment.steps]
        weights = {step.measure: step.weight for step in steps}
        judged = assessment.judgement.evidence if assessment.judgement else ()
        facts += [replace(fact, weight=weights.get(fact.measure, fact.weight)) for fact in judged]
        judged_measures = {fact.measure for fact in judged}
        facts += [step for step in steps if step.measure not in judged_measures]
        return tuple(dict.fromkeys(facts))

    def _score_of(self, state: _OpenUnit, polarity: Polarity) -> AdditiveScore | None:
        """Return the score by which the facts of a unit are weighed; None where they are not."""
        model = None if cue_of(state.unit.kind, polarity) in self._config.muted else self._kind_model(state)
        return model.polarities.get(polarity) if model else None


def _by_onset(state: _OpenUnit) -> tuple[int, str]:
    return state.unit.onset_ns, state.unit.unit_id
