"""Convert records to and from ROS messages of the same name, for the message classes of any library.

A message has the field names of its record, with these exceptions: `stamp_ns` and `frame_id` form a header, an
enumeration is the position among its members, a missing float is NaN, and a missing int is -1.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from norm_core.records.decision import CandidateJudgement, Decision, OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.flag import Evidence, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Person, Presence
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.speech import RobotSpeech, Utterance, Word
from norm_core.records.status import Counter, MonitorStatus, QueueStatus
from norm_core.records.text_limits import MAX_ITEMS, cut_texts
from norm_core.records.window import ClosedWindow
from norm_core.runtime.time import join_stamp, split_stamp

T = TypeVar("T")

# Makes a message of a type, such as std_msgs/msg/Header, from its fields by name.
Make = Callable[[str, dict[str, Any]], Any]

RECORDS: dict[str, type] = {
    f"norm_interfaces/msg/{cls.__name__}": cls
    for cls in (
        Answer, CandidateJudgement, ClosedWindow, Counter, Decision, Episode, Evidence, Face, Frame, LatencySegment,
        MonitorStatus, OtherAgent, Person, Presence, Provenance, Query, QueueStatus, RobotSpeech, SocialFlag, Utterance,
        Viewpoint, Word,
    )
}  # fmt: skip


class MessageError(ValueError):
    """A message is not a valid record; it may come from a newer version or a faulty publisher."""


def message_type(cls: type) -> str:
    """Return the ROS type name of a record's message."""
    return f"norm_interfaces/msg/{cls.__name__}"


def to_message(record: Any, make: Make) -> Any:
    """Return the message of a record."""
    values = {field.name: field.encode(getattr(record, field.name), make) for field in _fields(type(record))}
    if "stamp_ns" in values:
        sec, nanosec = split_stamp(values.pop("stamp_ns"))
        stamp = make("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
        header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": values.pop("frame_id")})
        values = {"header": header, **values}
    return make(message_type(type(record)), values)


def from_message(cls: type[T], message: Any, on_cut: Callable[[int], None] = lambda count: None) -> T:
    """Return the record of a message; raise MessageError with the fault.

    Long texts and lists are cut as `cut_texts` does; `on_cut` gets their number.
    """
    record, count = cut_texts(_record(cls, message))
    if count:
        on_cut(count)
    return record


def _record(cls: type[T], message: Any) -> T:
    values: dict[str, Any] = {}
    for field in _fields(cls):
        if field.name == "stamp_ns":
            values["stamp_ns"] = join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)
        elif field.name == "frame_id":
            values["frame_id"] = message.header.frame_id
        else:
            value = getattr(message, field.name, _ABSENT)
            if value is not _ABSENT:
                values[field.name] = field.decode(value)
            elif field.name not in _with_default(cast(Any, cls)):
                raise MessageError(f"{cls.__name__} lacks {field.name}; another version of Tactful recorded it")
    try:
        return cls(**values)
    except ValueError as error:
        raise MessageError(str(error)) from error


_ABSENT = object()  # a field of a message that an older version recorded


@cache
def _with_default(cls: Any) -> frozenset[str]:
    """Return the fields that a record can do without."""
    return frozenset(
        one.name for one in fields(cls) if one.default is not MISSING or one.default_factory is not MISSING
    )


class _Field(NamedTuple):
    """How to write one field into a message and read it back."""

    name: str
    encode: Callable[[Any, Make], Any]
    decode: Callable[[Any], Any]


def _fields(cls: Any) -> tuple[_Field, ...]:
    return _fields_of(cls)


@cache
def _fields_of(cls: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    return tuple(
        _field(name, hints[name], f"{cls.__name__}.{name}")
        for name in (field_of_record.name for field_of_record in fields(cls))
    )


def _field(name: str, hint: Any, where: str) -> _Field:
    """Choose the conversion by the field's type; cached per class, because messages arrive by the thousand."""
    if get_origin(hint) is UnionType:
        return _OPTIONAL[get_args(hint)[0]](name)
    if get_origin(hint) is tuple:
        item = _field(name, get_args(hint)[0], where)
        return _Field(
            name,
            lambda value, make: [item.encode(entry, make) for entry in value],
            lambda value: tuple(map(item.decode, value[: MAX_ITEMS + 1])),  # one more, so that a cut is counted
        )
    if is_dataclass(hint):
        return _Field(name, to_message, lambda value: _record(cast(type, hint), value))
    if issubclass(hint, StrEnum):
        return _enumeration(name, hint, where)
    encode, decode = _PLAIN.get(hint, (_as_it_is, hint))
    return _Field(name, encode, decode)


def _optional_float(name: str) -> _Field:
    return _Field(
        name,
        lambda value, make: math.nan if value is None else float(value),
        lambda value: None if math.isnan(value) else float(value),
    )


def _optional_int(name: str) -> _Field:
    return _Field(
        name, lambda value, make: -1 if value is None else value, lambda value: None if value == -1 else int(value)
    )


_OPTIONAL: dict[Any, Callable[[str], _Field]] = {float: _optional_float, int: _optional_int}


def _as_it_is(value: Any, _: Make) -> Any:
    return value


_PLAIN: dict[Any, tuple[Callable[[Any, Make], Any], Callable[[Any], Any]]] = {
    # An int in the place of a float would abort the rclpy process.
    float: (lambda value, _: float(value), float),
    bytes: (_as_it_is, lambda value: value.tobytes() if hasattr(value, "tobytes") else bytes(value)),
}


def _enumeration(name: str, hint: type[StrEnum], where: str) -> _Field:
    members = tuple(hint)
    codes = {member: number for number, member in enumerate(members)}

    def decode(number: int) -> StrEnum:
        if number >= len(members):
            raise MessageError(f"{where} is {number}, and the known values are 0 to {len(members) - 1}")
        return members[number]

    return _Field(name, lambda value, make: codes[value], decode)
