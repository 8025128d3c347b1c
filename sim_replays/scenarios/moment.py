"""Parse moments of an encounter: 12.5, r3, u2.end, r3+0.4, end-1."""

import re
from collections.abc import Mapping
from typing import Annotated, Protocol

from pydantic import AfterValidator, BeforeValidator

from norm_core.records.record import record

SPAN = ".."
_FORM = re.compile(
    r"(?:(?P<second>\d+(?:\.\d+)?)|(?P<close>end)|(?P<turn>[a-z]\d+)(?P<turn_end>\.end)?)(?P<shift>[+-]\d+(?:\.\d+)?)?"
)


@record
class Moment:
    """A time in seconds, an edge of a turn or the encounter's end, with an offset."""

    second: float | None = None
    turn: str = ""  # empty without a time: the encounter's end
    turn_end: bool = False
    shift_s: float = 0.0


class TimedSpan(Protocol):
    """What has a start and an end in seconds."""

    @property
    def start_s(self) -> float:
        """The start in seconds."""
        ...

    @property
    def end_s(self) -> float:
        """The end in seconds."""
        ...


def resolve(moment: Moment, turns: Mapping[str, TimedSpan], length_s: float) -> float:
    """Return the seconds of a moment from the encounter's start, from its turns by id and its length."""
    if moment.second is not None:
        base_s = moment.second
    elif moment.turn:
        turn = turns[moment.turn]
        base_s = turn.end_s if moment.turn_end else turn.start_s
    else:
        base_s = length_s
    return base_s + moment.shift_s


def parse_moment(text: str) -> Moment:
    """Parse a moment. Raises ValueError for invalid text."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no moment: write seconds (12.5), a turn (r3), its end (r3.end) or end, and +0.5")
    return Moment(
        second=float(found["second"]) if found["second"] else None,
        turn=found["turn"] or "",
        turn_end=bool(found["turn_end"]),
        shift_s=float(found["shift"] or 0),
    )


def parse_span(text: str) -> tuple[Moment, Moment]:
    """Parse a span, such as r3..r4.end. A turn alone spans from its start to its end."""
    first, dots, second = text.partition(SPAN)
    begin = parse_moment(first)
    if dots:
        return begin, parse_moment(second)
    if not begin.turn or begin.turn_end or begin.shift_s:
        raise ValueError(f"{text!r} is no span: write a turn (r3) or two moments (r3..u4.end)")
    return begin, parse_moment(f"{first}.end")


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


MomentText = Annotated[str, BeforeValidator(_as_text), AfterValidator(lambda text: parse_moment(text) and text)]
SpanText = Annotated[str, BeforeValidator(_as_text), AfterValidator(lambda text: parse_span(text) and text)]
