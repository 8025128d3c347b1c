"""The evidence on a unit."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_facts import MeasuredUnit
from norm_monitor.assessment.unit_model import UnitModel, UnitReading
from norm_monitor.assessment.weighing import Assessment, weigh

# Cite a source of evidence: publish its window if need be, and return the provenance of a flag that rests on it.
Cite = Callable[[], Provenance]
# Parts that have a provenance beside findings.
FACTS, JUDGE = "facts", "judge"


@record
class UnitEvidence:
    """All evidence on a unit, in the order of arrival; calibration learns from closed units."""

    unit: Unit
    findings: tuple[Finding, ...] = ()
    measured: MeasuredUnit | None = None  # None if it was never measured
    early: MeasuredUnit | None = None  # as first measured, before any reaction was known
    reading: UnitReading | None = None  # of `measured`; None where its facts are not weighed
    judgement: UnitJudgement | None = None
    made_by: Mapping[object, Cite] = field(default_factory=dict)  # by a finding's key, FACTS or JUDGE

    @property
    def is_early(self) -> bool:
        """Whether it was measured only before any reaction was known."""
        return self.measured is not None and not self.measured.settled

    def with_end_of(self, unit: Unit) -> "UnitEvidence":
        """Return the evidence with the later end of the two units."""
        ends_ns = [ended.offset_ns for ended in (self.unit, unit) if ended.offset_ns is not None]
        return replace(self, unit=replace(unit, offset_ns=max(ends_ns, default=None)))

    def with_finding(self, finding: Finding, cite: Cite) -> "UnitEvidence":
        """Return the evidence with a finding in place of the one of the same key."""
        others = tuple(other for other in self.findings if other.key != finding.key)
        made_by = {**self.made_by, finding.key: cite}
        return replace(self, findings=(*others, finding), made_by=made_by)

    def citation_of(self, part: object) -> Cite:
        """Return the function that cites a finding's key, FACTS or JUDGE."""
        return self.made_by.get(part, Provenance)

    def assessment(self, model: UnitModel, judgement: UnitJudgement | None = None, weight: float = 0.0) -> Assessment:
        """Weigh the evidence by a model, with or without a judgement."""
        reading = model.read(self.unit.kind, self.measured.facts) if self.measured else None
        return weigh(model.counted(self.unit.kind, self.findings), judgement, weight, reading)


def refutes_error(before: UnitEvidence, now: UnitEvidence) -> bool:
    """Whether what came after an error was flagged speaks against it: a cue, the judge, other words, or acceptance.

    A later reading of the same words by itself does not, as it drifts with each line of talk.
    """
    if now.unit.kind is not UnitKind.ROBOT_TURN or now.judgement is not before.judgement:
        return True
    if now.findings != before.findings or before.measured is None or now.measured is None:
        return True
    return now.measured.turn.text != before.measured.turn.text or now.measured.is_accepted
