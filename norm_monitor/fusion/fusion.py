"""Merge findings about one event from cues, windows and the judge, and limit floods."""

import hashlib
from collections import Counter as Tally
from dataclasses import replace

from pydantic import Field

from norm_core.records.flag import Attribute, FlagState, Severity, SocialFlag, Tier
from norm_core.records.provenance import Provenance
from norm_core.records.status import Counter
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.cues.finding import Finding

# How long after its end an event can be updated.
MEMORY_NS = 600 * NS_PER_S


class FusionConfig(Config):
    """When findings merge, and which become flags."""

    confidence_floor: float = Field(default=0.5, ge=0, le=1, description="probability below which nothing is flagged")
    merge_within_s: float = Field(
        default=1.5,
        ge=0,
        le=30,
        description="largest difference between the onsets of one event",
    )
    most_per_attribute: int = Field(
        default=20, ge=1, le=1000, description="the most events of one attribute and polarity in ten minutes"
    )
    muted: tuple[str, ...] = Field(default=(), description="cues and attributes that raise no flag")


class Fusion:
    """Merge findings into flags; all times are stamps."""

    def __init__(self, config: FusionConfig, cooldowns_s: dict[str, float]) -> None:
        self._config = config
        self._cooldowns_ns = {cue_id: s_to_ns(cooldown_s) for cue_id, cooldown_s in cooldowns_s.items()}
        self._tally: Tally[str] = Tally()
        self.reset()

    def reset(self) -> None:
        """Forget all events, for example when stamps jump back."""
        self._events: dict[str, SocialFlag] = {}
        self._event_of: dict[tuple[str, str], str] = {}
        # The latest version of each finding of an event, by cue and by its anchor, the turn or stamp that it is about.
        self._findings_of: dict[str, dict[tuple[str, str], Finding]] = {}
        self._last_onset_ns: dict[str, int] = {}

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Events that were opened, findings that were merged, and findings that were withheld, by reason."""
        return tuple(Counter(name=name, count=count) for name, count in sorted(self._tally.items()))

    def take(
        self, finding: Finding, provenance: Provenance, decision_ns: int, tier: Tier = Tier.CUE
    ) -> SocialFlag | None:
        """Return the flag to publish for a finding, or None if it is not new or is withheld."""
        self._forget(finding.onset_ns - MEMORY_NS)
        existing = self._events.get(self._event_of.get((finding.cue_id, finding.anchor), ""))
        if existing:
            return self._update(existing, finding, decision_ns)
        if reason := self._reason_withheld(finding):
            self._tally[f"findings_{reason}"] += 1
            return None
        same_event = next((event for event in self._events.values() if self._is_same_event(event, finding)), None)
        if same_event:
            return self._merge(same_event, finding, provenance, decision_ns, tier)
        return self._open(finding, provenance, decision_ns, tier)

    def _open(self, finding: Finding, provenance: Provenance, decision_ns: int, tier: Tier) -> SocialFlag:
        event = SocialFlag(
            stamp_ns=decision_ns,
            event_id=hashlib.sha256(f"{finding.cue_id}|{finding.anchor}|{finding.onset_ns}".encode()).hexdigest()[:16],
            state=FlagState.OPENED if finding.offset_ns is None else FlagState.CLOSED,
            polarity=finding.polarity,
            attributes=_in_order(finding.attributes),
            failure=finding.failure,
            severity=finding.severity,
            probability=finding.probability,
            onset_ns=finding.onset_ns,
            offset_ns=finding.offset_ns,
            decision_ns=decision_ns,
            tier=tier,
            cue_id=finding.cue_id,
            person_id=finding.person_id,
            evidence=finding.evidence,
            rationale=finding.rationale,
            correction=finding.correction,
            provenance=provenance,
        )
        self._last_onset_ns[finding.cue_id] = finding.onset_ns
        self._tally["events_opened"] += 1
        return self._store(event, finding)

    def _update(self, existing: SocialFlag, finding: Finding, decision_ns: int) -> SocialFlag | None:
        """Update an event from the same cue and anchor: publish only an end or a higher severity."""
        ended = existing.offset_ns is None and finding.offset_ns is not None
        worse = _rank(finding.severity) > _rank(existing.severity)
        if not (ended or worse):
            return None
        event = replace(
            existing,
            stamp_ns=decision_ns,
            decision_ns=decision_ns,
            state=FlagState.CLOSED if ended or existing.offset_ns is not None else FlagState.UPDATED,
            severity=max(existing.severity, finding.severity, key=_rank),
            offset_ns=max((n for n in (existing.offset_ns, finding.offset_ns) if n is not None), default=None),
        )
        return self._store(event, finding)

    def _merge(
        self, same_event: SocialFlag, finding: Finding, provenance: Provenance, decision_ns: int, tier: Tier
    ) -> SocialFlag:
        offset_ns = None
        if same_event.offset_ns is not None and finding.offset_ns is not None:
            offset_ns = max(same_event.offset_ns, finding.offset_ns)
        event = replace(
            same_event,
            stamp_ns=decision_ns,
            decision_ns=decision_ns,
            state=FlagState.UPDATED if offset_ns is None else FlagState.CLOSED,
            attributes=_in_order((*same_event.attributes, *finding.attributes)),
            severity=max(same_event.severity, finding.severity, key=_rank),
            probability=1 - (1 - same_event.probability) * (1 - finding.probability),
            onset_ns=min(same_event.onset_ns, finding.onset_ns),
            offset_ns=offset_ns,
            tier=same_event.tier if same_event.tier is tier else Tier.FUSED,
            provenance=same_event.provenance if tier is Tier.CUE else provenance,
        )
        self._tally["findings_merged"] += 1
        return self._store(event, finding)

    def _store(self, event: SocialFlag, finding: Finding) -> SocialFlag:
        """Store the event with the evidence and reasons of all its findings; the new one replaces its predecessor."""
        key = finding.cue_id, finding.anchor
        parts = self._findings_of.setdefault(event.event_id, {})
        parts[key] = finding
        event = replace(
            event,
            evidence=tuple(dict.fromkeys(fact for part in parts.values() for fact in part.evidence)),
            rationale=" ".join(part.rationale for part in parts.values()),
        )
        self._events[event.event_id] = event
        self._event_of[key] = event.event_id
        return event

    def _reason_withheld(self, finding: Finding) -> str:
        """Return why the finding must not become a flag; empty if it may."""
        config = self._config
        if finding.cue_id in config.muted or all(attribute in config.muted for attribute in finding.attributes):
            return "muted"
        if finding.probability < config.confidence_floor:
            return "below_confidence_floor"
        last_ns = self._last_onset_ns.get(finding.cue_id)
        cooldown_ns = self._cooldowns_ns.get(finding.cue_id, 0)
        if last_ns is not None and finding.onset_ns - last_ns < cooldown_ns:
            return "cooling_down"
        for attribute in finding.attributes:
            alike = [
                event
                for event in self._events.values()
                if event.polarity is finding.polarity and attribute in event.attributes
            ]
            if len(alike) >= config.most_per_attribute:
                return "over_rate_limit"
        return ""

    def _is_same_event(self, event: SocialFlag, finding: Finding) -> bool:
        """Whether a finding belongs to an event: the same polarity, and an onset near or within it.

        People note one behaviour of the robot with all its aspects, so attributes need not match.
        """
        return (
            event.polarity is finding.polarity
            and event.cue_id != finding.cue_id
            and (
                abs(event.onset_ns - finding.onset_ns) <= s_to_ns(self._config.merge_within_s)
                or event.onset_ns <= finding.onset_ns <= event.known_until_ns
            )
        )

    def _forget(self, before_ns: int) -> None:
        aged = {event_id for event_id, event in self._events.items() if event.known_until_ns < before_ns}
        if aged:
            self._events = {key: event for key, event in self._events.items() if key not in aged}
            self._event_of = {key: event_id for key, event_id in self._event_of.items() if event_id not in aged}
            self._findings_of = {key: parts for key, parts in self._findings_of.items() if key not in aged}


def _in_order(attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    return tuple(attribute for attribute in Attribute if attribute in attributes)


def _rank(severity: Severity) -> int:
    return list(Severity).index(severity)
