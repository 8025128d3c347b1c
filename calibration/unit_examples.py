"""What the monitor measures of each unit of labelled encounters, with the label."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_facts import Facts
from norm_monitor.assessment.unit_model import UnitModel
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.encounters.library import TrueEvent, Truth
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.replay.judge_stand_in import JudgeStandIn
from norm_monitor.windows.cutter import Entry

# A label belongs to a unit that begins this close to it.
_NEAR_NS = 2 * NS_PER_S
# Onsets this close together are the same moment: then the robot's turn comes first.
_SAME_NS = NS_PER_S // 5
_ORDER = (UnitKind.ROBOT_TURN, UnitKind.SILENCE, UnitKind.PERSON_TURN, UnitKind.SIGHTING)
# The kinds of units whose facts are weighed.
FITTED = (UnitKind.ROBOT_TURN, UnitKind.SILENCE, UnitKind.PERSON_TURN)
# A model that flags nothing, to learn from what is measured.
BLANK = UnitModel.blank()


@record
class LabelledUnit:
    """The facts of a unit, the cues that found something in it, and what a coder marked."""

    talk: int  # the number of its encounter
    kind: UnitKind
    onset_ns: int
    facts: Facts
    exchange: Exchange | None
    findings: tuple[Finding, ...]
    borne_out: tuple[bool, ...]  # of each finding, whether a label bears it out
    polarity: Polarity | None  # None for an ordinary unit
    attributes: tuple[Attribute, ...]
    offset_ns: int | None = None
    judgement: UnitJudgement | None = None  # of a judge that attends to the monitor
    early_facts: Facts = field(default_factory=dict)  # as it ended, before any reaction


@record
class LabelledRecords:
    """The records of an encounter by arrival, their sources, and its labels."""

    given: tuple[tuple[int, Entry], ...]
    sources: tuple[str, ...]
    truth: Truth


def labelled_units(
    talk: int,
    labelled: LabelledRecords,
    meaning: TextMatcher,
    table: ThresholdTable,
    attend: JudgeStandIn | None = None,
) -> list[LabelledUnit]:
    """Run the monitor on the records of an encounter, and label each unit that it measured; a judge may attend."""
    truth = labelled.truth
    closed: list[UnitEvidence] = []
    clock = ReplayClock()
    config = MonitorConfig.for_replay(labelled.sources, calls_per_hour=NO_CEILING if attend else 0.0)
    monitor = Monitor(config, table, meaning, clock, unit_model=BLANK, note_closed=closed.append)
    for at_ns, entry in labelled.given:
        clock.advance_to(max(at_ns, clock.now_ns()))
        monitor.take(entry)
        list(attend(monitor) if attend else ())
    monitor.end_input()
    list(attend(monitor) if attend else ())
    judgements = {judgement.unit.unit_id: judgement for judgement in attend.judgements} if attend else {}
    labels = labels_of([unit.unit for unit in closed], truth.events)
    return [
        LabelledUnit(
            talk=talk,
            kind=unit.unit.kind,
            onset_ns=unit.unit.onset_ns,
            facts=unit.measured.facts if unit.measured else {},
            exchange=unit.measured.exchange if unit.measured else None,
            findings=unit.findings,
            borne_out=tuple(_is_borne_out(finding, truth.events) for finding in unit.findings),
            polarity=labels[place].polarity if place in labels else None,
            attributes=labels[place].attributes if place in labels else (),
            offset_ns=unit.unit.offset_ns,
            judgement=judgements.get(unit.unit.unit_id),
            early_facts=unit.early.facts if unit.early else {},
        )
        for place, unit in enumerate(closed)
        if unit.measured or unit.unit.kind not in FITTED
    ]


def _is_borne_out(finding: Finding, events: Iterable[TrueEvent]) -> bool:
    """Whether a label of the same polarity is near, and shares an attribute."""
    return any(
        event.polarity is finding.reason.polarity
        and abs(event.onset_ns - finding.unit.onset_ns) <= _NEAR_NS
        and bool(set(event.attributes) & set(finding.reason.attributes))
        for event in events
    )


def labels_of(units: Sequence[Unit], events: Iterable[TrueEvent]) -> dict[int, TrueEvent]:
    """Return the label of each unit that has one, by its place; the first label of a unit stays."""
    labels: dict[int, TrueEvent] = {}
    for event in events:
        apart = {place: abs(unit.onset_ns - event.onset_ns) for place, unit in enumerate(units)}
        nearest_ns = min(apart.values(), default=_NEAR_NS)
        if nearest_ns < _NEAR_NS:
            same = [place for place, distance_ns in apart.items() if distance_ns <= nearest_ns + _SAME_NS]
            labels.setdefault(min(same, key=lambda place: (_ORDER.index(units[place].kind), place)), event)
    return labels
