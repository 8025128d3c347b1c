"""A unit: one turn, silence or sighting that a coder would mark as a whole."""

from enum import StrEnum

from norm_core.records.record import record
from norm_monitor.context.turns import Turn


class UnitKind(StrEnum):
    """What a unit is."""

    ROBOT_TURN = "robot_turn"
    SILENCE = "silence"  # somebody waited for the robot
    PERSON_TURN = "person_turn"  # the robot waits through it or talks into it
    SIGHTING = "sighting"  # somebody leaves, looks away or comes near


@record
class Unit:
    """One unit; the same `unit_id` means the same unit. The id holds the onset, as a robot may use an id again."""

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

    @classmethod
    def of_turn(cls, turn: Turn) -> "Unit":
        """Return the unit of a turn, of the robot or of a person."""
        kind = UnitKind.ROBOT_TURN if turn.is_robot else UnitKind.PERSON_TURN
        return cls(
            kind=kind,
            unit_id=f"{kind}:{turn.turn_id}@{turn.start_ns}",
            onset_ns=turn.start_ns,
            offset_ns=None if turn.ongoing else turn.end_ns,
            person_id="" if turn.is_robot else turn.speaker_id,
            of_id=turn.turn_id,
        )

    @classmethod
    def of_silence(cls, turn: Turn, end_ns: int | None) -> "Unit":
        """Return the silence after a person's turn; `end_ns` is None while it lasts."""
        return cls(
            kind=UnitKind.SILENCE,
            unit_id=f"{UnitKind.SILENCE}:{turn.turn_id}@{turn.end_ns}",
            onset_ns=turn.end_ns,
            offset_ns=None if end_ns is None else max(end_ns, turn.end_ns),
            person_id=turn.speaker_id,
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
