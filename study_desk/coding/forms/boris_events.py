"""Pair the events of BORIS into labels."""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from norm_core.records.flag import Severity
from norm_core.records.record import record
from study_desk.coding.forms.coding_target import CodingTarget
from study_desk.coding.forms.sheet import FormError, from_ms
from study_desk.coding.labels import from_note
from study_desk.log.schema import Label

# What BORIS's exports say where no subject was chosen.
_NO_SUBJECT = "No focal subject"


@record
class BorisEvent:
    """One event. A state has two, its start and its stop."""

    place: str
    time_s: Decimal
    subject: str
    behaviour: str
    modifiers: str = ""
    comment: str = ""
    is_point: bool = False


def labels_of_events(events: Iterable[BorisEvent], target: CodingTarget) -> Iterator[Label]:
    """Pair starts with stops as BORIS does: by subject, behaviour and modifiers, in their order."""
    begun: dict[tuple[str, str, str], BorisEvent] = {}
    for event in events:
        target.code_of(event.place, event.behaviour)
        key = (event.subject, event.behaviour, event.modifiers)
        if event.is_point:
            yield label_between(event, event, target)
        elif first := begun.pop(key, None):
            yield label_between(first, event, target)
        else:
            begun[key] = event
    for event in begun.values():
        raise FormError(
            f"{event.place}: {event.behaviour!r} of {event.subject!r} begins and never stops; add its stop in BORIS"
        )


def label_between(start: BorisEvent, stop: BorisEvent, target: CodingTarget) -> Label:
    """Make the label of a state, or of a point event if both are one."""
    fields = from_note(start.comment.removeprefix("'"))
    instant = bool(fields.pop("instant", False)) or start is stop
    if severity := _severity(start.modifiers):
        fields.setdefault("severity", severity)
    if stop.comment and stop.comment != start.comment:
        fields["comment"] = "; ".join(filter(None, (str(fields.get("comment", "")), stop.comment)))
    begin_ms, end_ms = (float(event.time_s * 1000) for event in (start, stop))
    times_ns = from_ms(begin_ms, end_ms, target.origin_ns, instant=instant)
    coder = "" if start.subject == _NO_SUBJECT else start.subject.split(" +", maxsplit=1)[0]
    code = target.code_of(start.place, start.behaviour)
    return target.label(stop.place, times_ns, code, coder=coder, fields=fields)


def _severity(modifiers: str) -> Severity | None:
    named = [part.strip().lower() for part in modifiers.replace(",", "|").split("|")]
    return next((severity for severity in Severity if severity.value in named), None)
