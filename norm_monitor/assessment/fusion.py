"""Fuse the evidence on each unit into one flag, and limit floods."""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag, Tier
from norm_core.records.status import Counter
from norm_core.runtime.time import BEFORE_ALL_NS, NS_PER_S, s_to_ns
from norm_monitor.assessment.explanation import FlagWithdrawal, explain_withdrawal
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.flag_policy import FlagDecision, FlagPolicy
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.reasons.every_reason import Reasons
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_evidence import FACTS, JUDGE, Cite, UnitEvidence, refutes_error
from norm_monitor.assessment.unit_facts import TIMED_FACTS, MeasuredUnit
from norm_monitor.assessment.unit_model import UnitModel
from norm_monitor.assessment.weighing import counted_judgement

# The period in which the flags of an attribute are limited.
RATE_PERIOD_NS = 600 * NS_PER_S
# Kinds of unit that consist of timing alone.
_TIMED_KINDS = frozenset({UnitKind.SILENCE, UnitKind.PERSON_TURN})
# Sightings that compare the times of two sources.
_TIMED_SIGHTINGS = frozenset({"ignores_looking_away", "ignores_leaving"})

NoteClosed = Callable[[UnitEvidence], None]


@dataclass
class _OpenUnit:
    """A unit that takes evidence: what is known of it, and what was published."""

    evidence: UnitEvidence
    flag: SocialFlag | None = None  # as published last
    decision: FlagDecision | None = None  # the last for which the evidence sufficed
    over_limit: bool = False
    changes_seen: int = -1  # changes to other units and settings, as counted at the last decision

    @property
    def unit(self) -> Unit:
        """The unit, with its end once that is known."""
        return self.evidence.unit

    @property
    def onset(self) -> tuple[int, str]:
        """The onset by which units are sorted."""
        return self.unit.onset_ns, self.unit.unit_id

    @property
    def current_flag(self) -> SocialFlag | None:
        """The published flag, unless it was withdrawn."""
        return self.flag if self.flag and self.flag.state is not FlagState.WITHDRAWN else None

    @property
    def is_lasting_error(self) -> bool:
        """Whether it is a silence that goes on, and is flagged as an error."""
        is_silence = self.unit.kind is UnitKind.SILENCE and self.unit.offset_ns is None
        return is_silence and self.current_flag is not None and self.current_flag.polarity is Polarity.ERROR


class _RateLimit:
    """The limit of flagged units for each polarity and attribute."""

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
        """Count a flagged unit, and forget those before the period."""
        since_ns = unit.onset_ns - RATE_PERIOD_NS
        for key in ((flag.polarity, attribute) for attribute in flag.attributes):
            recent = {unit_id: at_ns for unit_id, at_ns in self._onsets.get(key, {}).items() if at_ns >= since_ns}
            self._onsets[key] = {**recent, unit.unit_id: unit.onset_ns}


class _TimingHold:
    """The exclusion of timing while clocks lie apart, and later for units that began meanwhile."""

    def __init__(self) -> None:
        self._is_held = False
        self._counts_from_ns = BEFORE_ALL_NS

    def switch(self, is_held: bool, at_ns: int) -> bool:
        """Begin or end the hold; return whether that is a change."""
        is_change = is_held != self._is_held
        if is_change and not is_held:
            self._counts_from_ns = at_ns
        self._is_held = is_held
        return is_change

    def is_excluded(self, unit: Unit) -> bool:
        """Whether evidence of timing does not count for a unit."""
        return self._is_held or unit.onset_ns < self._counts_from_ns

    def is_counted(self, unit: Unit, cue_id: str = "") -> bool:
        """Whether a cue's finding on a unit counts, or its other evidence where no cue is named."""
        return not self.is_excluded(unit) or not (cue_id in _TIMED_SIGHTINGS or unit.kind in _TIMED_KINDS)


class Fusion:
    """Turn evidence into flags; all times are stamps.

    The stages:

    1. `add_finding`, `add_facts`, `add_judgement` and `track_ends` add evidence to its unit; `hold_timing` and
       `reconfigure` change which of it counts.
    2. `FlagPolicy` computes one probability from a unit's evidence, and decides whether that suffices for a flag.
    3. `_update_flag` compares the decision with the published flag: it opens (`_open_flag`, within the limit of
       flags), updates or withdraws it (`_withdraw`). Only this stage writes states and counters.
    4. `close` ends a unit, and its flag with it.

    A flag opens once its unit is probable enough for the sensitivity, and changes with the evidence. It closes when
    the unit takes no more evidence, and is withdrawn once the evidence no longer suffices. The error of a silence,
    however, stays until somebody speaks. A closed flag depends on its unit's evidence, not on the order of arrival.
    """

    def __init__(
        self,
        config: FusionConfig,
        model: UnitModel,
        note_closed: NoteClosed | None = None,
    ) -> None:
        """Call `note_closed` with each unit that takes no more evidence."""
        self._model, self._note_closed = model, note_closed
        self._tally: Tally[str] = Tally()
        self._changes = 0  # of what other units and the settings contribute to a decision
        self.reset()
        self.reconfigure(config, 0)

    def reset(self) -> None:
        """Forget all units, for example when stamps jump back."""
        self._open: dict[str, _OpenUnit] = {}
        self._closed_until_ns = BEFORE_ALL_NS
        self._timing = _TimingHold()
        self._rate = _RateLimit()
        self._reasons: Reasons | None = None

    def begin_window(self, reasons: Reasons) -> None:
        """Word flags by the talk of a window from now on; before the first, findings and facts word them."""
        self._reasons = reasons

    def reconfigure(self, config: FusionConfig, decision_ns: int) -> list[SocialFlag]:
        """Decide by another configuration from now on; return the flags of open units that this changes."""
        self._changes += 1
        self._config = config
        self._policy = FlagPolicy(config, self._model)
        return self._update_flags(decision_ns)

    def hold_timing(self, is_held: bool, at_ns: int, decision_ns: int) -> list[SocialFlag]:
        """Use no evidence of timing while clocks lie apart; return the flags that this changes."""
        is_change = self._timing.switch(is_held, at_ns)
        self._changes += is_change
        if not (is_change and is_held):
            return []
        for open_unit in self._open.values():
            evidence, unit = open_unit.evidence, open_unit.unit
            findings = tuple(
                finding for finding in evidence.findings if self._timing.is_counted(unit, finding.reason.cue_id)
            )
            judgement = None if unit.kind in _TIMED_KINDS else evidence.judgement
            open_unit.evidence = replace(evidence, findings=findings, judgement=judgement)
            if evidence.measured:
                self._weigh_facts(open_unit, evidence.measured, evidence.citation_of(FACTS))
        return self._update_flags(decision_ns)

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Flags that were opened and withdrawn, and findings that were not used, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    @property
    def oldest_open_ns(self) -> int | None:
        """The onset of the oldest unit whose end is unknown."""
        units = (open_unit.unit for open_unit in self._open.values())
        return min((unit.onset_ns for unit in units if unit.offset_ns is None), default=None)

    @property
    def findings(self) -> list[Finding]:
        """The findings on the units that take evidence."""
        return [finding for open_unit in self._open.values() for finding in open_unit.evidence.findings]

    def estimate_change_by_judge(self, unit: Unit) -> float:
        """Estimate how likely a judge that is right changes whether a unit is flagged."""
        open_unit = self._open.get(unit.unit_id)
        evidence = open_unit.evidence if open_unit else UnitEvidence(unit=unit)
        if evidence.reading is None and self._timing.is_counted(unit):
            evidence = replace(evidence, reading=self._model.read(unit.kind, {}))
        assessment = self._policy.assess(evidence, self._find_counted_judgement(evidence))
        return 1 - assessment.probability if self._decide(evidence) else sum(assessment.likely.values())

    def is_closed(self, unit: Unit) -> bool:
        """Whether a unit takes no more evidence."""
        is_over = unit.offset_ns is not None and unit.offset_ns < self._closed_until_ns
        return is_over and unit.unit_id not in self._open

    def is_open(self, unit: Unit) -> bool:
        """Whether a unit takes evidence and has some."""
        return unit.unit_id in self._open

    def is_flagged_by_judge(self, unit: Unit) -> bool:
        """Whether a unit has a flag that rests on an answer of the judge."""
        open_unit = self._open.get(unit.unit_id)
        flag = open_unit.current_flag if open_unit else None
        return flag is not None and flag.tier is not Tier.CUE

    def add_finding(self, finding: Finding, cite: Cite, decision_ns: int) -> SocialFlag | None:
        """Add a finding to its unit, and return the flag of the unit if that changes it."""
        open_unit = self._open.get(finding.unit.unit_id)
        is_new = open_unit is None or all(other.key != finding.key for other in open_unit.evidence.findings)
        if is_new and self.is_closed(finding.unit):
            self._tally["findings_after_close"] += 1
            return None
        if not self._timing.is_counted(finding.unit, finding.reason.cue_id):
            self._tally["findings_without_timing"] += 1
            return None
        cite()  # the window of a finding is published, whether it is flagged or not
        open_unit = self._find_or_open(finding.unit)
        open_unit.evidence = open_unit.evidence.with_finding(finding, cite)
        return self._update_flag(open_unit, decision_ns)

    def add_facts(self, measured: MeasuredUnit, cite: Cite, decision_ns: int) -> SocialFlag | None:
        """Replace the measured facts of a unit, and return its flag if that changes it."""
        if self.is_closed(measured.unit) or not self._timing.is_counted(measured.unit):
            return None  # a closed unit is measured as long as a window shows it
        known_unit = self._open.get(measured.unit.unit_id)
        unit_before = known_unit.unit if known_unit else None
        open_unit = self._find_or_open(measured.unit)
        before = open_unit.evidence.measured
        if not measured.settled:
            if open_unit.evidence.early or before:
                return None
            open_unit.evidence = replace(open_unit.evidence, early=measured)
            if not self._model.kind_model(measured.unit.kind, measured.facts, is_early=True):
                return None
        if before is None or before.facts != measured.facts or before.settled != measured.settled:
            self._weigh_facts(open_unit, measured, cite)
        elif open_unit.unit == unit_before and open_unit.changes_seen == self._changes:
            return None  # the decision would be the same
        return self._update_flag(open_unit, decision_ns, keeps_lasting_error=True)

    def _weigh_facts(self, open_unit: _OpenUnit, measured: MeasuredUnit, cite: Cite) -> None:
        """Weigh the facts of a unit, without those of timing where these do not count."""
        unit = open_unit.unit
        if self._timing.is_excluded(unit):
            untimed = {name: value for name, value in measured.facts.items() if name not in TIMED_FACTS}
            measured = replace(measured, facts=untimed)
        reading = None
        if self._timing.is_counted(unit):
            reading = self._model.read(measured.unit.kind, measured.facts, is_early=not measured.settled)
        made_by = {**open_unit.evidence.made_by, FACTS: cite}
        open_unit.evidence = replace(open_unit.evidence, measured=measured, reading=reading, made_by=made_by)

    def add_judgement(self, judgement: UnitJudgement, cite: Cite, decision_ns: int) -> list[SocialFlag]:
        """Add an answer of the judge to its unit, and return the flags of the incident that this changes."""
        if self.is_closed(judgement.unit):
            self._tally["judgements_after_close"] += 1
            return []
        if not self._timing.is_counted(judgement.unit):
            return []
        open_unit = self._find_or_open(judgement.unit)
        made_by = {**open_unit.evidence.made_by, JUDGE: cite}
        open_unit.evidence = replace(open_unit.evidence, judgement=judgement, made_by=made_by)
        self._changes += 1
        silences = (other for other in self._open.values() if other.unit.is_ended_by(open_unit.unit))
        changed = [self._update_flag(affected, decision_ns) for affected in (open_unit, *silences)]
        return [flag for flag in changed if flag]

    def add_note(self, judgement: UnitJudgement) -> SocialFlag | None:
        """Add a note, which decides nothing, to an answer of the judge; return the flag of the unit, if any."""
        open_unit = self._open.get(judgement.unit.unit_id)
        if open_unit is None or open_unit.evidence.judgement is None:
            return None
        open_unit.evidence = replace(open_unit.evidence, judgement=judgement)
        self._changes += 1
        decision, before = self._decide(open_unit.evidence), open_unit.current_flag
        if decision is None or before is None:
            return None
        open_unit.decision = decision
        open_unit.flag = decision.make_flag(FlagState.UPDATED, before.decision_ns)
        return open_unit.flag

    def track_ends(self, units: Iterable[Unit], decision_ns: int) -> list[SocialFlag]:
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

        The flags of units that the judge has not answered about, by their ids, are marked outside parity.
        """
        if until_ns is not None:
            self._closed_until_ns = max(self._closed_until_ns, until_ns - s_to_ns(self._config.open_s))
        ended = [
            open_unit
            for open_unit in self._open.values()
            if until_ns is None or open_unit.unit.latest_end_ns < self._closed_until_ns
        ]
        self._changes += bool(ended)
        flags = []
        for open_unit in sorted(ended, key=attrgetter("onset")):
            unit_id, evidence = open_unit.unit.unit_id, open_unit.evidence
            del self._open[unit_id]
            if self._note_closed:
                self._note_closed(replace(evidence, measured=None) if evidence.is_early else evidence)
            if open_unit.flag is None:
                continue
            at_ns = open_unit.flag.decision_ns  # closing decides nothing new
            decision = self._decide_anew(open_unit)
            flag = decision.make_flag(FlagState.CLOSED, at_ns) if decision else self._withdraw(open_unit, at_ns)
            if flag and unit_id in unanswered:
                flag = replace(flag, provenance=replace(flag.provenance, window_late=True))
            flags += [flag] if flag else []
        return flags

    def _find_or_open(self, unit: Unit) -> _OpenUnit:
        """Return the open unit of that id, with the later of both ends."""
        open_unit = self._open.setdefault(unit.unit_id, _OpenUnit(UnitEvidence(unit=unit)))
        open_unit.evidence = open_unit.evidence.with_end_of(unit)
        return open_unit

    def _find_counted_judgement(self, evidence: UnitEvidence) -> UnitJudgement | None:
        """Return the answer of the judge that counts for a unit, beside the answers about other open units."""
        others = ((other.unit, other.evidence.judgement) for other in self._open.values())
        return counted_judgement(evidence.unit, evidence.judgement, others)

    def _decide(self, evidence: UnitEvidence) -> FlagDecision | None:
        """Return the decision of the policy about a unit."""

        def find_reasons() -> Sequence[Reason]:
            without_timing = self._timing.is_excluded(evidence.unit)
            return self._reasons.find(evidence.unit, without_timing=without_timing) if self._reasons else ()

        return self._policy.decide(evidence, self._find_counted_judgement(evidence), find_reasons)

    def _decide_anew(self, open_unit: _OpenUnit) -> FlagDecision | None:
        """Decide by all evidence. A flagged error stands, unless what came since speaks against it by itself."""
        decision, before = self._decide(open_unit.evidence), open_unit.decision
        if before is None or open_unit.current_flag is None or before.assessment.polarity is not Polarity.ERROR:
            return decision
        is_error = decision is not None and decision.assessment.polarity is Polarity.ERROR
        if is_error or self._timing.is_excluded(open_unit.unit) or refutes_error(before.evidence, open_unit.evidence):
            return decision
        return self._decide(replace(before.evidence, unit=open_unit.unit))

    def _update_flags(self, decision_ns: int) -> list[SocialFlag]:
        """Decide anew about all open units; return the flags that change."""
        changed = [
            self._update_flag(unit, decision_ns) for unit in sorted(self._open.values(), key=attrgetter("onset"))
        ]
        return [flag for flag in changed if flag]

    def _update_flag(
        self, open_unit: _OpenUnit, decision_ns: int, *, keeps_lasting_error: bool = False
    ) -> SocialFlag | None:
        """Return the flag to publish after a change of the evidence, or None if nothing that matters changed.

        With `keeps_lasting_error`, the error of a silence stays as long as the silence does nothing but go on.
        """
        decision, before = self._decide_anew(open_unit), open_unit.decision
        open_unit.changes_seen = self._changes
        is_other = decision is None or decision.assessment.polarity is not Polarity.ERROR
        if keeps_lasting_error and open_unit.is_lasting_error and is_other:
            return None
        if decision is None:
            return self._withdraw(open_unit, decision_ns)
        open_unit.decision = decision
        if open_unit.current_flag and before and before.visible_state == decision.visible_state:
            decision.cite()  # the window is cited all the same
            return None
        flag = decision.make_flag(FlagState.UPDATED, decision_ns)
        if open_unit.flag is None:
            return self._open_flag(open_unit, flag)
        open_unit.flag = flag
        return flag

    def _open_flag(self, open_unit: _OpenUnit, flag: SocialFlag) -> SocialFlag | None:
        """Open a flag, unless its attributes have had too many; a unit over the limit stays without."""
        if open_unit.over_limit:
            return None
        if self._rate.is_reached(flag, open_unit.unit, self._config.max_per_attribute):
            self._tally["events_over_rate_limit"] += 1
            open_unit.over_limit = True
            return None
        self._rate.count(flag, open_unit.unit)
        self._tally["events_opened"] += 1
        open_unit.flag = replace(flag, state=FlagState.OPENED)
        return open_unit.flag

    def _withdraw(self, open_unit: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Withdraw the flag of a unit whose evidence no longer suffices, if it has one, and say what changed."""
        flag, decision, evidence = open_unit.current_flag, open_unit.decision, open_unit.evidence
        if flag is None or decision is None:
            return None
        self._tally["events_withdrawn"] += 1
        judgement = self._find_counted_judgement(evidence)
        if self._timing.is_excluded(open_unit.unit):
            why = FlagWithdrawal(reason="the clocks of its sources lie apart")
        elif judgement is not evidence.judgement:
            why = FlagWithdrawal(reason="the judge blames the answer that ends it")
        else:
            scores = self._policy.find_scores(evidence)
            why = explain_withdrawal(decision.evidence, evidence, flag.polarity, scores)
        assessment = self._policy.assess(evidence, judgement)
        open_unit.flag = replace(
            flag,
            stamp_ns=decision_ns,
            decision_ns=decision_ns,
            state=FlagState.WITHDRAWN,
            probability=assessment.likely[flag.polarity],
            base_log_odds=None,  # the evidence is what changed, not what adds up
            evidence=why.evidence or flag.evidence,
            rationale=f"Withdrawn, as {why.reason}.",
            provenance=decision.cite(),
        )
        return open_unit.flag
