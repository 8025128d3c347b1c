"""Convert records to and from ROS messages of the same name, for the message classes of any library.

A message has the field names of its record, with these exceptions: `stamp_ns` and `frame_id` form a header; `onset_ns`
is a time called `onset`; `yaw_deg` is `yaw` in radians; an enumeration is the position among its members; a missing
float is NaN, and a missing int is -1. A missing time is zero, so that one at zero is written as 1 ns; an older bag has
-1 s, as any before zero is missing. A field that an older bag lacks has its default.
"""

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache, partial
from types import UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from norm_core.records.decision import CandidateJudgement, Decision, OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.flag import Evidence, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.presence import Face, Person, Presence
from norm_core.records.provenance import LatencySegment, Provenance
from norm_core.records.speech import RobotSpeech, Utterance, Word
from norm_core.records.stamps import NS_PER_S, is_usable_stamp, join_stamp, split_stamp
from norm_core.records.status import Counter, MonitorStatus, QueueStatus
from norm_core.records.text_limits import MAX_ITEMS, cut_texts
from norm_core.records.window import ClosedWindow

T = TypeVar("T")

# A function that makes a message of a type, such as std_msgs/msg/Header, from its fields by name.
Make = Callable[[str, dict[str, Any]], Any]
Encode = Callable[[Any, Make], Any]
Decode = Callable[[Any], Any]

OF_BENCH = (Answer, Episode, Query)
OF_ROBOT = (
    CandidateJudgement, ClosedWindow, Counter, Decision, Evidence, Face, Frame, LatencySegment, MonitorStatus,
    OtherAgent, Person, Presence, Provenance, QueueStatus, RobotSpeech, SocialFlag, Utterance, Viewpoint, Word,
)  # fmt: skip

# The value of a field that a message of an older version lacks.
_ABSENT = object()
# The field of a message with the JPEG of a frame.
_TILE = "tile"
_DURATIONS = {"duration_ns", "overlap_ns"}
# Rounding makes the way through radians exact; the model of faces resolves whole degrees at best.
_ANGLE_DIGITS = 9


class MessageError(ValueError):
    """A message is not a valid record; it may come from a newer version or a faulty publisher."""


def message_type(cls: type) -> str:
    """Return the ROS type name of a record's message."""
    return f"{'norm_bench_interfaces' if cls in OF_BENCH else 'norm_interfaces'}/msg/{cls.__name__}"


RECORDS: dict[str, type] = {message_type(cls): cls for cls in (*OF_BENCH, *OF_ROBOT)}


def to_message(record: Any, make: Make) -> Any:
    """Return the message of a record."""
    values = {
        field.target: field.encode(getattr(record, field.name), make) for field in _list_fields(cast(Any, type(record)))
    }
    if "stamp" in values:
        header = make("std_msgs/msg/Header", {"stamp": values.pop("stamp"), "frame_id": values.pop("frame_id")})
        values = {"header": header, **values}
    if _TILE in values:
        values[_TILE].header = values["header"]
    return make(message_type(type(record)), values)


def from_message(cls: type[T], message: Any, on_cut: Callable[[int], None] = lambda count: None) -> T:
    """Return the record of a message; `on_cut` gets the number of long texts and lists that `cut_texts` cut.

    Raises MessageError with the fault.
    """
    record, count = cut_texts(_read_record(cls, message))
    if count:
        on_cut(count)
    return record


def _read_record(cls: type[T], message: Any) -> T:
    values: dict[str, Any] = {}
    for field in _list_fields(cast(Any, cls)):
        source = message.header if field.name in {"stamp_ns", "frame_id"} else message
        if (value := getattr(source, field.target, _ABSENT)) is not _ABSENT:
            values[field.name] = field.decode(value)
        elif field.name not in _find_optional_fields(cast(Any, cls)):
            raise MessageError(f"{cls.__name__} lacks {field.name}; another version of Tactful recorded it")
        if field.name in values and (fault := _find_fault(field, values[field.name])):
            raise MessageError(f"{cls.__name__} {fault} {field.target}; let its publisher set it")
    try:
        return cls(**values)
    except ValueError as error:
        raise MessageError(str(error)) from error


def _find_fault(field: "_Field", value: Any) -> str:
    """Return what is wrong with a value; empty if it is valid."""
    if value is None:
        return "states no" if field.is_required else ""
    return "has an impossible" if field.name.endswith("_ns") and not is_usable_stamp(value) else ""


@cache
def _find_optional_fields(cls: Any) -> frozenset[str]:
    """Return the names of the fields with a default."""
    return frozenset(
        field.name for field in fields(cls) if field.default is not MISSING or field.default_factory is not MISSING
    )


class _Field(NamedTuple):
    """How to write one field into a message, where it is called `target`, and read it back."""

    name: str
    target: str
    encode: Callable[[Any, Make], Any]
    decode: Callable[[Any], Any]
    is_required: bool


@cache
def _list_fields(cls: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(cls)
    return tuple(
        _choose_conversion(field.name, hints[field.name], f"{cls.__name__}.{field.name}") for field in fields(cls)
    )


def _choose_conversion(name: str, hint: Any, where: str) -> _Field:
    """Choose the conversion by the field's type."""
    is_required = get_origin(hint) is not UnionType
    kind = hint if is_required else get_args(hint)[0]
    if name.endswith("_ns") and kind is int:
        codec = _DURATION if name in _DURATIONS else _TIME if is_required else _OPTIONAL_TIME
        return _Field(name, name.removesuffix("_ns"), *codec, is_required)
    if name.endswith("_deg"):
        return _Field(name, name.removesuffix("_deg"), _encode_angle, _decode_angle, is_required)
    if name == "tile_jpeg":
        return _Field(name, _TILE, _encode_jpeg, lambda value: _decode_bytes(value.data), is_required)
    return _Field(name, name, *_choose_codec(name, hint, where), is_required)


def _choose_codec(name: str, hint: Any, where: str) -> tuple[Encode, Decode]:
    """Choose how a value of a type is written and read; `where` names the field in errors."""
    if get_origin(hint) is UnionType:
        return _OPTIONAL[get_args(hint)[0]]
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        encode, decode = _choose_codec(name, inner, where)
        decode = float if inner is float else decode  # a NaN in a list stays one
        return (
            lambda value, make: [encode(entry, make) for entry in value],
            lambda value: tuple(map(decode, value[: MAX_ITEMS + 1])),  # one more, so that a cut is counted
        )
    if is_dataclass(hint):
        return to_message, lambda value: _read_record(cast(type, hint), value)
    if issubclass(hint, StrEnum):
        return _make_enumeration_codec(hint, where)
    return _PLAIN.get(hint, (_keep_value, hint))


def _encode_time(value: int, make: Make, kind: str = "Time") -> Any:
    sec, nanosec = split_stamp(value)
    return make(f"builtin_interfaces/msg/{kind}", {"sec": sec, "nanosec": nanosec})


def _decode_time(value: Any) -> int | None:
    if value.nanosec >= NS_PER_S:
        raise MessageError(f"a time has {value.nanosec} nanoseconds; its sender is faulty")
    return None if (value.sec, value.nanosec) == (-1, 0) else join_stamp(value.sec, value.nanosec)


_TIME: tuple[Encode, Decode] = (_encode_time, _decode_time)
_DURATION: tuple[Encode, Decode] = (partial(_encode_time, kind="Duration"), _decode_time)
_OPTIONAL_TIME: tuple[Encode, Decode] = (
    lambda value, make: _encode_time(0 if value is None else max(value, 1), make),
    lambda value: max(_decode_time(value) or 0, 0) or None,
)


def _encode_angle(value: float | None, _: Make) -> float:
    return math.nan if value is None else math.radians(value)


def _decode_angle(value: float) -> float | None:
    return None if math.isnan(value) else round(math.degrees(value), _ANGLE_DIGITS)


def _decode_bytes(value: Any) -> bytes:
    return value.tobytes() if hasattr(value, "tobytes") else bytes(value)


def _encode_jpeg(value: bytes, make: Make) -> Any:
    stamp = make("builtin_interfaces/msg/Time", {"sec": 0, "nanosec": 0})
    header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": ""})
    return make("sensor_msgs/msg/CompressedImage", {"header": header, "format": "jpeg", "data": value})


def _keep_value(value: Any, _: Make) -> Any:
    return value


_OPTIONAL: dict[Any, tuple[Encode, Decode]] = {
    float: (
        lambda value, _: math.nan if value is None else float(value),
        lambda value: None if math.isnan(value) else float(value),
    ),
    int: (lambda value, _: -1 if value is None else value, lambda value: None if value == -1 else int(value)),
}
_PLAIN: dict[Any, tuple[Encode, Decode]] = {
    # An int in the place of a float would abort the rclpy process.
    float: (lambda value, _: float(value), lambda value: None if math.isnan(value) else float(value)),
    bytes: (_keep_value, _decode_bytes),
}


def _make_enumeration_codec(hint: type[StrEnum], where: str) -> tuple[Encode, Decode]:
    members = tuple(hint)
    codes = {member: code for code, member in enumerate(members)}

    def decode(code: int) -> StrEnum:
        if code >= len(members):
            raise MessageError(f"{where} is {code}, and the known values are 0 to {len(members) - 1}")
        return members[code]

    return (lambda value, _: codes[value]), decode
