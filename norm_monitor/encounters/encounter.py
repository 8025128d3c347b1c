"""The format of a scripted encounter: who says what and when, who is visible, and the labelled events."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.config import Config

SPAN = ".."
_FORM = re.compile(
    r"(?:(?P<second>\d+(?:\.\d+)?)|(?P<close>end)|(?P<turn>[a-z]\d+)(?P<turn_end>\.end)?)(?P<shift>[+-]\d+(?:\.\d+)?)?"
)

ROBOT = "r"  # first letter of the ids of the robot's turns
PAUSE = re.compile(r"\[(\d+(?:\.\d+)?)\]")
DEFAULT_GAP_S = 0.6


@record
class Moment:
    """A time in seconds, an edge of a turn or the encounter's end, with an offset."""

    second: float | None = None
    turn: str = ""  # empty without a time: the encounter's end
    turn_end: bool = False
    shift_s: float = 0.0


def parse_moment(text: str) -> Moment:
    """Parse a moment. Raises ValueError for invalid text."""
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(
            f"{text!r} is not a moment: write seconds (12.5), a turn (r3), its end (r3.end) or end, and +0.5"
        )
    return Moment(
        second=float(match["second"]) if match["second"] else None,
        turn=match["turn"] or "",
        turn_end=bool(match["turn_end"]),
        shift_s=float(match["shift"] or 0),
    )


def parse_span(text: str) -> tuple[Moment, Moment]:
    """Parse a span, such as r3..r4.end. A turn alone spans from its start to its end."""
    first, dots, second = text.partition(SPAN)
    begin = parse_moment(first)
    if dots:
        return begin, parse_moment(second)
    if not begin.turn or begin.turn_end or begin.shift_s:
        raise ValueError(f"{text!r} is not a span: write a turn (r3) or two moments (r3..u4.end)")
    return begin, parse_moment(f"{first}.end")


def _to_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


MomentText = Annotated[str, BeforeValidator(_to_text), AfterValidator(lambda text: parse_moment(text) and text)]
SpanText = Annotated[str, BeforeValidator(_to_text), AfterValidator(lambda text: parse_span(text) and text)]
Meters = Annotated[float, Field(gt=0, le=20)]
Letter = Annotated[str, Field(pattern=r"^[a-z]$")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Sentence = Annotated[str, Field(min_length=1)]


class Edges(StrEnum):
    """How the robot's speech edges reach the monitor."""

    STATED = "stated"
    ESTIMATED = "estimated"
    NONE = "none"  # the robot does not publish when it speaks


class Noise(StrEnum):
    """How loud the room is."""

    QUIET = "quiet"
    ROOM = "room"
    BUSY = "busy"


class Basis(StrEnum):
    """The basis of the coder's judgement."""

    TIMING = "timing"  # when something was said or not said
    WORDING = "wording"  # the words themselves
    SIGHT = "sight"  # who was there, looked where, or stood how near
    UNDERSTANDING = "understanding"  # what the words mean to these people, here


class ScriptedTurn(Config):
    """One turn. [1.5] among the words is a pause of 1.5 s."""

    id: Annotated[str, Field(pattern=r"^[a-z]\d+$")]
    say: Sentence
    gap_s: Annotated[float, Field(ge=-30, le=60)] | None = None  # after the end of the previous turn
    at: MomentText | None = None
    edges: Edges = Edges.STATED

    @property
    def speaker(self) -> str:
        """The first letter of the id: r for the robot, another for a person."""
        return self.id[0]

    @property
    def pieces(self) -> tuple[str, ...]:
        """The words between pauses."""
        return tuple(" ".join(piece.split()) for piece in PAUSE.split(self.say)[::2])

    @property
    def pauses_s(self) -> tuple[float, ...]:
        """The lengths of the pauses inside the turn, in order."""
        return tuple(float(pause) for pause in PAUSE.findall(self.say))

    @property
    def words(self) -> str:
        """The text without its pauses."""
        return " ".join(self.pieces)

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if self.gap_s is not None and self.at is not None:
            raise ValueError(f"turn {self.id} has both gap_s and at: keep one")
        if not all(self.pieces):
            raise ValueError(f"turn {self.id} begins or ends with a pause, or has two in a row: use gap_s or at")
        return self


class ScriptedPerson(Config):
    """A person in front of the robot, who is absent while neither seen nor at a distance."""

    seen: tuple[SpanText, ...] = ()
    away: tuple[SpanText, ...] = ()  # seen, but turned away
    distance_m: dict[MomentText, Meters] = Field(default_factory=dict)  # distance at given moments


class MarkedEvent(Config):
    """One labelled event, judged by the robot's behaviour."""

    polarity: Polarity
    attributes: Annotated[tuple[Attribute, ...], Field(min_length=1)]
    onset: MomentText
    offset: MomentText
    basis: Basis
    evidence: Annotated[tuple[SpanText, ...], Field(min_length=1)]
    rationale: Sentence
    correction: str = ""

    @model_validator(mode="after")
    def _has_matching_correction(self) -> Self:
        if (self.polarity is Polarity.ERROR) != bool(self.correction):
            raise ValueError("an error needs a correction, and a competence has none")
        if len(set(self.attributes)) != len(self.attributes):
            raise ValueError("an attribute appears twice")
        return self


class Encounter(Config):
    """A complete script. The module timeline checks its times."""

    id: Name
    writer: str = Field(default="", exclude=True)  # no hash covers who wrote it
    writer_kind: Literal["", "person", "language model"] = Field(default="", exclude=True)
    setting: Sentence
    user: Sentence  # the person whom the robot meets
    robot: str = ""  # the robot's purpose, if the setting does not state it
    language: Literal["en", "zh"] = "en"
    noise: Noise = Noise.ROOM
    voices: dict[Letter, Name]
    length_s: Annotated[float, Field(gt=0, le=600)] | None = None  # default: two seconds after the last turn
    turns: Annotated[tuple[ScriptedTurn, ...], Field(min_length=1)]
    people: dict[Letter, ScriptedPerson] = Field(default_factory=dict)
    events: tuple[MarkedEvent, ...] = ()

    @model_validator(mode="after")
    def _has_all_references(self) -> Self:
        earlier_ids: set[str] = set()
        for turn in self.turns:
            if turn.id in earlier_ids:
                raise ValueError(f"turn {turn.id} appears twice")
            if turn.speaker not in self.voices:
                raise ValueError(f"turn {turn.id}: voices has no {turn.speaker}")
            if turn.at and parse_moment(turn.at).turn not in earlier_ids | {""}:
                raise ValueError(f"turn {turn.id}: at may name earlier turns alone, not {turn.at}")
            if turn.at and turn.at.startswith("end"):
                raise ValueError(f"turn {turn.id}: at cannot be counted from the end")
            earlier_ids.add(turn.id)
        for where, name in self._list_references():
            if name and name not in earlier_ids:
                raise ValueError(f"{where} names turn {name}, which does not exist: correct one of the two")
        return self

    def _list_references(self) -> Iterator[tuple[str, str]]:
        for index, event in enumerate(self.events):
            for moment in (event.onset, event.offset):
                yield f"events.{index}", parse_moment(moment).turn
            for span in event.evidence:
                yield from ((f"events.{index}.evidence", moment.turn) for moment in parse_span(span))
        for letter, person in self.people.items():
            for span in (*person.seen, *person.away):
                yield from ((f"people.{letter}", moment.turn) for moment in parse_span(span))
            yield from ((f"people.{letter}.distance_m", parse_moment(key).turn) for key in person.distance_m)


def make_talk_name(encounter: Encounter) -> str:
    """Return the name of an encounter in a batch, which no encounter of another writer has."""
    return f"{encounter.writer}/{encounter.id}" if encounter.writer else encounter.id
