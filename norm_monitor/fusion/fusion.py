"""Fuse the evidence on each unit into one flag, and limit floods."""

import hashlib
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import Field

from norm_core.records.flag import Attribute, Failure, FlagState, Polarity, SocialFlag
from norm_core.records.provenance import Provenance
from norm_core.records.status import Counter
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.cues.finding import Finding
from norm_monitor.fusion.weighing import weigh
from norm_monitor.units.judgement import UnitJudgement
from norm_monitor.units.unit import Unit

# The period of the limit per attribute.
RATE_PERIOD_NS = 600 * NS_PER_S
# A unit whose end was never seen counts as ended so long after its onset.
LONGEST_UNIT_NS = 300 * NS_PER_S


class FusionConfig(Config):
    """Which evidence becomes a flag, and how long a unit takes evidence."""

    confidence_floor: float = Field(default=0.5, ge=0, le=1, description="probability below which nothing is flagged")
    open_s: float = Field(
        default=30.0, ge=0, le=600, description="how long after its end a unit takes evidence; then its flag closes"
    )
    judge_weight: float = Field(
        default=1.0, ge=0, le=10, description="the weight of the judge's answer beside the cues; 0 ignores it"
    )
    most_per_attribute: int = Field(
        default=20, ge=1, le=1000, description="the most units of one attribute and polarity in ten minutes"
    )
    muted: tuple[str, ...] = Field(default=(), description="cues and attributes that raise no flag")


@dataclass
class _OpenUnit:
    """A unit that takes evidence, and its flag as last published."""

    unit: Unit
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    made_by: dict[tuple[str, str], Provenance] = field(default_factory=dict)
    judgement: UnitJudgement | None = None
    flag: SocialFlag | None = None

    @property
    def end_ns(self) -> int:
        """When the unit ended, or is taken to have ended at the latest."""
        return self.unit.onset_ns + LONGEST_UNIT_NS if self.unit.offset_ns is None else self.unit.offset_ns


class Fusion:
    """Turn evidence into flags; all times are stamps.

    A flag opens once its unit's evidence reaches the confidence floor, and changes with the evidence. It closes when
    the unit takes no more evidence; it is withdrawn where the evidence no longer suffices. A closed flag depends on
    its unit's evidence, and not on the order in which that came.
    """

    def __init__(self, config: FusionConfig, cooldowns_s: dict[str, float]) -> None:
        """`cooldowns_s` holds the shortest time between two units of one cue, by cue id."""
        self._config = config
        self._cooldowns_ns = {cue_id: s_to_ns(cooldown_s) for cue_id, cooldown_s in cooldowns_s.items()}
        self._tally: Tally[str] = Tally()
        self.reset()

    def reset(self) -> None:
        """Forget all units, for example when stamps jump back."""
        self._open: dict[str, _OpenUnit] = {}
        self._closed_until_ns = -(2**63)
        self._newest_onset_of: dict[str, int] = {}  # by cue
        self._onsets: dict[tuple[Polarity, Attribute], dict[str, int]] = {}  # of units with accepted findings

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Flags that were opened and withdrawn, and findings that were not used, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    @property
    def oldest_open_ns(self) -> int | None:
        """The onset of the oldest unit whose end is unknown."""
        return min((one.unit.onset_ns for one in self._open.values() if one.unit.offset_ns is None), default=None)

    def take(self, finding: Finding, provenance: Provenance, decision_ns: int) -> SocialFlag | None:
        """Add a cue's finding to its unit, and return the unit's flag if that changes it."""
        key = finding.cue_id, finding.anchor
        state = self._open.get(finding.unit.unit_id)
        if state is None or key not in state.findings:
            if reason := self._reason_refused(finding):
                self._tally[f"findings_{reason}"] += 1
                return None
            self._note_accepted(finding)
        state = self._state_of(finding.unit)
        state.findings[key], state.made_by[key] = finding, provenance
        return self._changed(state, decision_ns)

    def take_judgement(self, judgement: UnitJudgement, decision_ns: int) -> SocialFlag | None:
        """Add the judge's answer to its unit, and return the unit's flag if that changes it."""
        if self._is_closed(judgement.unit):
            self._tally["judgements_after_close"] += 1
            return None
        state = self._state_of(judgement.unit)
        state.judgement = judgement
        return self._changed(state, decision_ns)

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

    def close(self, until_ns: int | None) -> list[SocialFlag]:
        """Close the units that take no more evidence at `until_ns`, or all; return their final flags."""
        if until_ns is not None:
            self._closed_until_ns = max(self._closed_until_ns, until_ns - s_to_ns(self._config.open_s))
        ended = [one for one in self._open.values() if until_ns is None or one.end_ns < self._closed_until_ns]
        flags = []
        for state in sorted(ended, key=lambda one: (one.unit.onset_ns, one.unit.unit_id)):
            del self._open[state.unit.unit_id]
            # Closing decides nothing new, so the time of the last decision stays.
            if state.flag and (flag := self._flag_of(state, FlagState.CLOSED, state.flag.decision_ns)):
                flags.append(flag)
        return flags

    def _state_of(self, unit: Unit) -> _OpenUnit:
        state = self._open.setdefault(unit.unit_id, _OpenUnit(unit))
        state.unit = replace(unit, offset_ns=_later(state.unit.offset_ns, unit.offset_ns))
        return state

    def _changed(self, state: _OpenUnit, decision_ns: int) -> SocialFlag | None:
        """Return the flag to publish after a change of the evidence, or None if nothing that matters changed."""
        before, flag = state.flag, self._flag_of(state, FlagState.UPDATED, decision_ns)
        if flag is None:
            if before is None or before.state is FlagState.WITHDRAWN:
                return None
            self._tally["events_withdrawn"] += 1
            flag = replace(before, stamp_ns=decision_ns, decision_ns=decision_ns, state=FlagState.WITHDRAWN)
        elif before is None:
            self._tally["events_opened"] += 1
            flag = replace(flag, state=FlagState.OPENED)
        elif before.state is not FlagState.WITHDRAWN and _essence(before) == _essence(flag):
            return None
        state.flag = flag
        return flag

    def _flag_of(self, state: _OpenUnit, flag_state: FlagState, decision_ns: int) -> SocialFlag | None:
        """Return the flag that the evidence amounts to, or None if it does not suffice for one."""
        found = weigh(state.findings.values(), state.judgement, self._config.judge_weight)
        attributes = tuple(one for one in found.attributes if one not in self._config.muted)
        if found.probability < self._config.confidence_floor or not attributes:
            return None
        unit, strongest = state.unit, found.support[0] if found.support else None
        made_by = state.made_by[strongest.cue_id, strongest.anchor] if strongest else Provenance()
        return SocialFlag(
            stamp_ns=decision_ns,
            event_id=hashlib.sha256(f"{unit.unit_id}".encode()).hexdigest()[:16],
            state=flag_state,
            polarity=found.polarity,
            attributes=attributes,
            failure=strongest.failure if strongest else Failure.SOCIAL,
            severity=found.severity,
            probability=found.probability,
            onset_ns=unit.onset_ns,
            offset_ns=unit.offset_ns if flag_state is not FlagState.CLOSED else state.end_ns,
            decision_ns=decision_ns,
            tier=found.tier,
            cue_id=strongest.cue_id if strongest else "",
            person_id=unit.person_id,
            evidence=found.evidence,
            rationale=found.rationale,
            correction=found.correction,
            provenance=found.judgement.provenance if found.judgement else made_by,
        )

    def _reason_refused(self, finding: Finding) -> str:
        """Return why a finding is no evidence; empty if it is."""
        config = self._config
        if finding.cue_id in config.muted or all(attribute in config.muted for attribute in finding.attributes):
            return "muted"
        if self._is_closed(finding.unit):
            return "after_close"
        if finding.probability < config.confidence_floor:
            return "below_confidence_floor"
        newest_ns = self._newest_onset_of.get(finding.cue_id)
        if newest_ns is not None and finding.onset_ns - newest_ns < self._cooldowns_ns.get(finding.cue_id, 0):
            return "cooling_down"
        for attribute in finding.attributes:
            onsets = self._onsets.get((finding.polarity, attribute), {})
            lately = sum(at_ns > finding.onset_ns - RATE_PERIOD_NS for at_ns in onsets.values())
            if finding.unit.unit_id not in onsets and lately >= config.most_per_attribute:
                return "over_rate_limit"
        return ""

    def _is_closed(self, unit: Unit) -> bool:
        is_over = unit.offset_ns is not None and unit.offset_ns < self._closed_until_ns
        return is_over and unit.unit_id not in self._open

    def _note_accepted(self, finding: Finding) -> None:
        """Count a new finding for cooldowns and the rate limit."""
        newest_ns = self._newest_onset_of.get(finding.cue_id, finding.onset_ns)
        self._newest_onset_of[finding.cue_id] = max(newest_ns, finding.onset_ns)
        for attribute in finding.attributes:
            onsets = self._onsets.setdefault((finding.polarity, attribute), {})
            for unit_id in [known for known, at_ns in onsets.items() if at_ns < finding.onset_ns - RATE_PERIOD_NS]:
                del onsets[unit_id]
            onsets[finding.unit.unit_id] = finding.onset_ns


def _essence(flag: SocialFlag) -> tuple[object, ...]:
    """Return what of a flag is worth publishing a change of."""
    ended = flag.offset_ns is not None
    return (
        flag.polarity, flag.attributes, flag.severity, round(flag.probability, 2), flag.tier, flag.cue_id, ended
    )  # fmt: skip


def _later(one_ns: int | None, other_ns: int | None) -> int | None:
    return max((at_ns for at_ns in (one_ns, other_ns) if at_ns is not None), default=None)
