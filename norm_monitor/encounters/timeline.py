"""Lay out an encounter in seconds, from the duration of each piece of speech."""

import random
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import pairwise

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.encounter import (
    DEFAULT_GAP_S,
    ROBOT,
    Edges,
    Encounter,
    MarkedEvent,
    Moment,
    ScriptedTurn,
    parse_moment,
    parse_span,
)

# The time after the last turn.
CLOSING_S = 2.0
# The duration of a walk from one distance to the next.
WALK_S = 1.5
# The share of a gap by which a seed may change it.
MAX_JITTER = 0.1
# The speaking time of an English letter, of a Chinese character, and of a piece of speech in addition.
LETTER_S = 0.061
CHARACTER_S = 0.21
PIECE_S = 0.12

Durations = Callable[[ScriptedTurn], tuple[float, ...]]


class TimelineError(TactfulError, ValueError):
    """The times of an encounter contradict each other. The message names the turn or event."""


@record
class SpeechPiece:
    """Speech between two pauses."""

    text: str
    start_s: float
    end_s: float


@record
class SpokenTurn:
    """One turn, with the times of its pieces of speech."""

    turn_id: str
    speaker: str
    edges: Edges
    pieces: tuple[SpeechPiece, ...]

    @property
    def start_s(self) -> float:
        """The start of the first piece."""
        return self.pieces[0].start_s

    @property
    def end_s(self) -> float:
        """The end of the last piece."""
        return self.pieces[-1].end_s

    @property
    def text(self) -> str:
        """The words of all pieces."""
        return " ".join(piece.text for piece in self.pieces)

    @property
    def is_by_robot(self) -> bool:
        """Whether the robot speaks."""
        return self.speaker == ROBOT


@record
class TimedEvent:
    """A marked event with its times."""

    marked: MarkedEvent
    onset_s: float
    offset_s: float
    evidence_s: tuple[tuple[float, float], ...]


@record
class Sighting:
    """The times when a person is visible or turned away, and their distances."""

    person_id: str
    seen_s: tuple[tuple[float, float], ...] = ()
    away_s: tuple[tuple[float, float], ...] = ()
    distance_m: tuple[tuple[float, float], ...] = ()

    def is_seen(self, at_s: float) -> bool:
        """Whether the person is before the camera at a time."""
        return _is_within(self.seen_s, at_s)

    def is_away(self, at_s: float) -> bool:
        """Whether the person looks away at a time."""
        return _is_within(self.away_s, at_s)

    def distance_at(self, at_s: float) -> float | None:
        """Interpolate the distance in metres. None before the first and after the last point."""
        if not self.distance_m or not self.distance_m[0][0] <= at_s <= self.distance_m[-1][0]:
            return None
        for (begin_s, begin_m), (end_s, end_m) in pairwise(self.distance_m):
            if begin_s <= at_s <= end_s:
                share = (at_s - begin_s) / (end_s - begin_s) if end_s > begin_s else 1.0
                return begin_m + share * (end_m - begin_m)
        return self.distance_m[-1][1]


@record
class Timeline:
    """One encounter with every event at its time, in seconds from the start."""

    encounter_id: str
    language: str
    length_s: float
    spoken: tuple[SpokenTurn, ...]
    people: tuple[Sighting, ...] = ()
    events: tuple[TimedEvent, ...] = field(default=())


def lay_out(encounter: Encounter, durations: Durations | None = None, seed: int | None = None) -> Timeline:
    """Lay out the encounter. A seed changes each gap by up to a tenth, and keeps overlaps overlaps."""
    durations = durations or estimate_durations
    chance = random.Random(seed) if seed is not None else None
    placed: dict[str, SpokenTurn] = {}
    end_s = 0.0
    for turn in encounter.turns:
        if turn.at is not None:
            start_s = resolve_moment(parse_moment(turn.at), placed, end_s)
        else:
            gap_s = DEFAULT_GAP_S if turn.gap_s is None else turn.gap_s
            start_s = end_s + gap_s * (1 + chance.uniform(-MAX_JITTER, MAX_JITTER) if chance else 1)
        if start_s < 0:
            raise TimelineError(f"{encounter.id}: turn {turn.id} begins {-start_s:.2f} s before the encounter")
        placed[turn.id] = _place_turn(turn, start_s, durations(turn))
        end_s = placed[turn.id].end_s
    last_s = max(spoken.end_s for spoken in placed.values())
    length_s = encounter.length_s or last_s + CLOSING_S
    if last_s > length_s:
        raise TimelineError(f"{encounter.id}: the last turn ends at {last_s:.2f} s, after length_s {length_s:g}")
    return Timeline(
        encounter_id=encounter.id,
        language=encounter.language,
        length_s=length_s,
        spoken=tuple(sorted(placed.values(), key=lambda spoken: spoken.start_s)),
        people=_place_people(encounter, placed, length_s),
        events=_place_events(encounter, placed, length_s),
    )


def estimate_durations(turn: ScriptedTurn) -> tuple[float, ...]:
    """Estimate the duration of each piece of a turn from its letters."""
    return tuple(
        PIECE_S + sum(CHARACTER_S if "\u4e00" <= letter <= "\u9fff" else LETTER_S for letter in piece)
        for piece in turn.pieces
    )


def _place_turn(turn: ScriptedTurn, start_s: float, durations_s: tuple[float, ...]) -> SpokenTurn:
    pieces: list[SpeechPiece] = []
    for text, length_s, pause_s in zip(turn.pieces, durations_s, (*turn.pauses_s, 0.0), strict=True):
        pieces.append(SpeechPiece(text=text, start_s=start_s, end_s=start_s + length_s))
        start_s += length_s + pause_s
    return SpokenTurn(turn_id=turn.id, speaker=turn.speaker, edges=turn.edges, pieces=tuple(pieces))


def resolve_moment(moment: Moment, turns: Mapping[str, SpokenTurn], length_s: float) -> float:
    """Return the seconds of a moment from the encounter's start, from its turns by id and its length."""
    if moment.second is not None:
        base_s = moment.second
    elif moment.turn:
        turn = turns[moment.turn]
        base_s = turn.end_s if moment.turn_end else turn.start_s
    else:
        base_s = length_s
    return base_s + moment.shift_s


def _resolve_span(text: str, placed: dict[str, SpokenTurn], length_s: float, where: str) -> tuple[float, float]:
    begin, end = parse_span(text)
    begin_s, end_s = resolve_moment(begin, placed, length_s), resolve_moment(end, placed, length_s)
    # Turn lengths differ by voice, so an offset may reach slightly beyond the edges.
    if not -CLOSING_S <= begin_s < end_s <= length_s + CLOSING_S:
        raise TimelineError(f"{where}: {text} is {begin_s:.2f} to {end_s:.2f} s of an encounter of {length_s:.2f} s")
    return max(begin_s, 0.0), min(end_s, length_s)


def _place_people(encounter: Encounter, placed: dict[str, SpokenTurn], length_s: float) -> tuple[Sighting, ...]:
    people = []
    for letter, person in sorted(encounter.people.items()):
        where = f"{encounter.id}: people.{letter}"
        seen = tuple(_resolve_span(text, placed, length_s, where) for text in person.seen)
        away = tuple(_resolve_span(text, placed, length_s, where) for text in person.away)
        points = ((resolve_moment(parse_moment(at), placed, length_s), m) for at, m in person.distance_m.items())
        distance = sorted((min(max(at_s, 0.0), length_s), m) for at_s, m in points)
        people.append(Sighting(person_id=letter, seen_s=seen, away_s=away, distance_m=_add_walks(distance)))
    return tuple(people)


def _add_walks(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Add the points at which a standing person starts to walk."""
    walked = points[:1]
    for (before_s, before_m), (at_s, at_m) in pairwise(points):
        walked += [(max(before_s, at_s - WALK_S), before_m), (at_s, at_m)]
    return tuple(walked)


def _place_events(encounter: Encounter, placed: dict[str, SpokenTurn], length_s: float) -> tuple[TimedEvent, ...]:
    timed = []
    for index, event in enumerate(encounter.events):
        where = f"{encounter.id}: events.{index}"
        onset_s, offset_s = _resolve_span(f"{event.onset}..{event.offset}", placed, length_s, where)
        evidence = tuple(_resolve_span(text, placed, length_s, f"{where}.evidence") for text in event.evidence)
        if not any(begin_s < offset_s and onset_s < end_s for begin_s, end_s in evidence):
            raise TimelineError(
                f"{where}: none of its evidence {', '.join(event.evidence)} lies between {onset_s:.2f} s "
                f"and {offset_s:.2f} s"
            )
        timed.append(TimedEvent(marked=event, onset_s=onset_s, offset_s=offset_s, evidence_s=evidence))
    return tuple(sorted(timed, key=lambda event: event.onset_s))


def _is_within(spans: tuple[tuple[float, float], ...], at_s: float) -> bool:
    return any(begin_s <= at_s < end_s for begin_s, end_s in spans)
