"""Records to and from ROS messages of the same name, for any library's message classes.

A message has its record's fields under the same names, but: stamp_ns and frame_id travel as a header, an
enumeration as its position among its members, and a missing float as not-a-number.
"""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from norm_core.decision import CandidateJudgement, Decision, OtherAgent, Viewpoint
from norm_core.episode import Answer, Episode, Query
from norm_core.flag import Evidence, SocialFlag
from norm_core.frame import Frame
from norm_core.presence import Face, Person, Presence
from norm_core.provenance import LatencySegment, Provenance
from norm_core.speech import RobotSpeech, Utterance, Word
from norm_core.status import Counter, MonitorStatus, QueueStatus
from norm_core.time import join_stamp, split_stamp
from norm_core.window import ClosedWindow

T = TypeVar("T")

# Makes a message of a type such as std_msgs/msg/Header from its fields by name.
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
    """A message that is no valid record, as one from a newer version or a careless publisher."""


def message_type(cls: type) -> str:
    """The ROS name of a record's message."""
    return f"norm_interfaces/msg/{cls.__name__}"


def code(member: StrEnum) -> int:
    """The number that stands for an enumeration's member in a message."""
    return list(type(member)).index(member)


def to_message(record: Any, make: Make) -> Any:
    """The message of a record."""
    values = {name: _encode(getattr(record, name), hint, make) for name, hint in _hints(type(record)).items()}
    if "stamp_ns" in values:
        sec, nanosec = split_stamp(values.pop("stamp_ns"))
        stamp = make("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
        header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": values.pop("frame_id")})
        values = {"header": header, **values}
    return make(message_type(type(record)), values)


def from_message(cls: type[T], message: Any) -> T:
    """The record of a message, or a MessageError that says what is wrong with it."""
    values: dict[str, Any] = {}
    for name, hint in _hints(cls).items():
        if name == "stamp_ns":
            values[name] = join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)
        elif name == "frame_id":
            values[name] = message.header.frame_id
        else:
            values[name] = _decode(getattr(message, name), hint, f"{cls.__name__}.{name}")
    try:
        return cls(**values)
    except ValueError as error:
        raise MessageError(str(error)) from error


def _hints(cls: Any) -> dict[str, Any]:
    return _hints_of(cls)


@cache
def _hints_of(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _encode(value: Any, hint: Any, make: Make) -> Any:
    if value is None:
        return math.nan
    if isinstance(value, int) and (hint is float or get_origin(hint) is UnionType):
        return float(value)  # a whole number in a float's place would abort rclpy's process
    if isinstance(value, StrEnum):
        return code(value)
    if isinstance(value, tuple):
        return [_encode(item, get_args(hint)[0], make) for item in value]
    if is_dataclass(value):
        return to_message(value, make)
    return value


def _decode(value: Any, hint: Any, where: str) -> Any:
    if get_origin(hint) is UnionType:
        return None if math.isnan(value) else float(value)
    if get_origin(hint) is tuple:
        return tuple(_decode(item, get_args(hint)[0], where) for item in value)
    if hint is bytes:
        return value.tobytes() if hasattr(value, "tobytes") else bytes(value)
    if issubclass(hint, StrEnum):
        members = list(hint)
        if value >= len(members):
            raise MessageError(f"{where} is {value}, and the known values are 0 to {len(members) - 1}")
        return members[value]
    if is_dataclass(hint):
        return from_message(cast(type, hint), value)
    return hint(value)
