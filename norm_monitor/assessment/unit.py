"""A unit: one turn, silence or sighting that a coder would mark as a whole, and the judge's answer about it."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_sign_of_work, reports_end

# How long after its onset a unit ends whose end was never seen.
MAX_UNIT_NS = 300 * NS_PER_S
# A shorter silence after a person's turn is the usual gap between turns.
MIN_SILENCE_NS = 2 * NS_PER_S
# While the robot is at work, as it said, a shorter pause is usual.
MIN_PAUSE_AT_WORK_NS = 8 * NS_PER_S


class UnitKind(StrEnum):
    """The kind of a unit."""

    ROBOT_TURN = "robot_turn"
    SILENCE = "silence"  # somebody waited for the robot
    PERSON_TURN = "person_turn"  # the robot waits through it or talks into it
    SIGHTING = "sighting"  # somebody leaves, looks away or comes near


@record
class Unit:
    """One unit, the same for the same `unit_id`. The id holds the onset, as a robot may use an id of a turn again."""

    kind: UnitKind
    unit_id: str
    onset_ns: int
    offset_ns: int | None = None  # None while it goes on
    person_id: str = ""
    of_id: str = ""  # the turn that it is, or that it follows

    def __post_init__(self) -> None:
        """Raise ValueError if the unit ends before it begins."""
        if self.offset_ns is not None and self.offset_ns < self.onset_ns:
            raise ValueError(f"unit {self.unit_id} ends before it begins")

    @property
    def latest_end_ns(self) -> int:
        """The end of the unit, or the latest possible one while it is unknown."""
        return self.onset_ns + MAX_UNIT_NS if self.offset_ns is None else self.offset_ns

    @property
    def event_id(self) -> str:
        """The id of its flag."""
        return hashlib.sha256(self.unit_id.encode()).hexdigest()[:16]

    def is_ended_by(self, turn: "Unit") -> bool:
        """Whether this is a silence, and the robot's turn ends it."""
        is_pair = self.kind is UnitKind.SILENCE and turn.kind is UnitKind.ROBOT_TURN
        return is_pair and self.offset_ns == turn.onset_ns

    @classmethod
    def of_turn(cls, turn: Turn) -> "Unit":
        """Return the unit of a turn, of the robot or of a person."""
        kind = UnitKind.ROBOT_TURN if turn.is_robot else UnitKind.PERSON_TURN
        return cls(
            kind=kind,
            unit_id=f"{kind}:{turn.turn_id}@{turn.start_ns}",
            onset_ns=turn.start_ns,
            offset_ns=None if turn.ongoing else turn.end_ns,
            person_id=turn.addressee_id if turn.is_robot else turn.speaker_id,
            of_id=turn.turn_id,
        )

    @classmethod
    def of_silence(cls, turn: Turn, end_ns: int | None) -> "Unit":
        """Return the silence after a turn; `end_ns` is None while it lasts."""
        return cls(
            kind=UnitKind.SILENCE,
            unit_id=f"{UnitKind.SILENCE}:{turn.turn_id}@{turn.end_ns}",
            onset_ns=turn.end_ns,
            offset_ns=None if end_ns is None else max(end_ns, turn.end_ns),
            person_id=turn.addressee_id if turn.is_robot else turn.speaker_id,
            of_id=turn.turn_id,
        )

    @classmethod
    def of_sighting(cls, what: str, onset_ns: int, offset_ns: int | None, person_id: str = "") -> "Unit":
        """Return the unit of something seen, for example `leaving`."""
        return cls(
            kind=UnitKind.SIGHTING,
            unit_id=f"{UnitKind.SIGHTING}:{what}:{person_id}@{onset_ns}",
            onset_ns=onset_ns,
            offset_ns=offset_ns,
            person_id=person_id,
        )


def name_judge_measure(polarity: Polarity) -> str:
    """Name the probability that the judge states."""
    return f"probability of a social {polarity}, by the judge"


@record
class UnitJudgement:
    """The judge's answer about one unit, or why there is none.

    `probability` holds an error and a competence; the rest to 1 is that the unit is ordinary. The attributes, the
    note and the correction are empty where the model takes the unit for ordinary.
    """

    unit: Unit
    outcome: Outcome
    reason: str = ""
    probability: Mapping[Polarity, float] = field(default_factory=dict)
    attributes: tuple[Attribute, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""
    correction: str = ""
    awaits_note: bool = False  # the judge writes one where a flag opens
    provenance: Provenance = Provenance()


def units_of(scene: Scene, since_ns: int) -> Iterator[Unit]:
    """Return the turns that end at `since_ns` or later, and such silences after people's turns and signs of work."""
    for index, turn in enumerate(scene.turns):
        if turn.text.strip() and turn.end_ns >= since_ns:
            yield Unit.of_turn(turn)
        silence = _find_silence_after(scene, index, turn)
        if silence and (silence.offset_ns is None or silence.offset_ns >= since_ns):
            yield silence


def _find_silence_after(scene: Scene, index: int, turn: Turn) -> Unit | None:
    """Return the silence after a person's turn or the robot's sign of work, if it is long enough."""
    if not turn.timed:
        return None  # words without times say nothing about silence
    if turn.is_robot and not (is_sign_of_work(turn.text) and any(not other.is_robot for other in scene.turns[:index])):
        return None
    report = None
    if not turn.is_robot:
        report = find_report_of_earlier_work(reversed(scene.turns[:index]), scene.turns[index + 1 :])
    others = [other for other in scene.turns if other is not report]
    if any(other.end_ns > turn.end_ns and other.start_ns <= turn.end_ns for other in others):
        return None  # somebody else still speaks
    following = next((other for other in others if other.start_ns > turn.end_ns), None)
    end_ns = following.start_ns if following else None
    shortest_ns = MIN_PAUSE_AT_WORK_NS if turn.is_robot else MIN_SILENCE_NS
    if (end_ns or scene.end_ns) - turn.end_ns < shortest_ns:
        return None
    return Unit.of_silence(turn, end_ns)


def find_report_of_earlier_work(before: Iterable[Turn], after: Iterable[Turn]) -> Turn | None:
    """Return the robot's "done" after a person's turn if it is about what the robot did before that turn.

    `before` and `after` are the turns around that turn, the nearest first.
    """
    at_work = next((other for other in before if other.is_robot), None)
    answer = next((other for other in after if other.is_robot), None)
    if at_work and answer and is_sign_of_work(at_work.text) and reports_end(answer.text):
        return answer
    return None
