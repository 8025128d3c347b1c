"""Reads rosbag2 folders in the order their messages were recorded."""

from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_types_from_idl, get_types_from_msg

from norm_core.bags.types import typestore
from norm_core.error import TactfulError
from norm_core.messages import RECORDS, from_message
from norm_core.record import record


class BagError(TactfulError, ValueError):
    """A bag that cannot be read; its message says what is wrong and what to do."""


@record
class BagMessage:
    """One message as it lies in the bag; stamp_ns is when it was recorded."""

    topic: str
    type_name: str
    stamp_ns: int
    data: bytes


@record
class TopicSummary:
    topic: str
    type_name: str
    message_count: int


class BagReader:
    """An open bag; use it in a with statement."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            raise BagError(f"{path}: there is no such folder")
        if not (path / "metadata.yaml").is_file():
            raise BagError(f"{path}: has no metadata.yaml: no rosbag2 folder, or one whose recording was cut short")
        try:
            self._reader = Reader(path)
            self._reader.open()
        except Exception as error:  # the bag library raises what its parsers do
            raise BagError(f"{path}: cannot be opened as a bag: {error}") from error

    @property
    def topics(self) -> tuple[TopicSummary, ...]:
        """What the bag holds, by topic."""
        connections = sorted(self._reader.connections, key=lambda c: (c.topic, c.msgtype))
        return tuple(TopicSummary(topic=c.topic, type_name=c.msgtype, message_count=c.msgcount) for c in connections)

    @property
    def message_count(self) -> int:
        return self._reader.message_count

    @property
    def bounds_ns(self) -> tuple[int, int] | None:
        """When the first and the last message were recorded; None for an empty bag."""
        if not self.message_count:
            return None
        return self._reader.start_time, self._reader.end_time - 1

    def messages(self, topics: Collection[str] | None = None) -> Iterator[BagMessage]:
        """All messages, or those of some topics, every one of which must be in the bag."""
        missing = sorted(set(topics or ()) - {c.topic for c in self._reader.connections})
        if missing:
            present = ", ".join(sorted({c.topic for c in self._reader.connections})) or "none"
            raise BagError(f"{self._path}: has no topic {', '.join(missing)}; it has {present}")
        chosen = [c for c in self._reader.connections if topics is None or c.topic in topics]
        if not chosen:
            return
        read, expected, stored = 0, sum(c.msgcount for c in chosen), self._reader.messages(chosen)
        while True:
            try:
                connection, stamp_ns, data = next(stored)
            except StopIteration:
                break
            except Exception as error:  # the bag library raises what its parsers do
                raise BagError(f"{self._path}: is damaged after {read} of {expected} messages: {error}") from error
            yield BagMessage(topic=connection.topic, type_name=connection.msgtype, stamp_ns=stamp_ns, data=bytes(data))
            read += 1
        if read != expected:
            raise BagError(f"{self._path}: is damaged: {read} of {expected} messages could be read")

    def decode(self, message: BagMessage) -> Any:
        """The record of a norm_interfaces message, else a message of the bag library."""
        if message.type_name not in typestore().fielddefs:
            self._learn(message.type_name)
        try:
            decoded = typestore().deserialize_cdr(message.data, message.type_name)
        except Exception as error:  # generated code, which raises anything on bad bytes
            raise BagError(
                f"{self._path}: a message on {message.topic} at {message.stamp_ns} ns "
                f"is no {message.type_name}: {error}"
            ) from error
        cls = RECORDS.get(message.type_name)
        return from_message(cls, decoded) if cls else decoded

    def close(self) -> None:
        if self._reader.is_open:
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _learn(self, type_name: str) -> None:
        """Takes a foreign type's definition from the bag itself."""
        definition = next(c.msgdef for c in self._reader.connections if c.msgtype == type_name)
        if definition.format is MessageDefinitionFormat.NONE:
            raise BagError(f"{self._path}: holds {type_name} without its definition, and it is not known here")
        if definition.format is MessageDefinitionFormat.IDL:
            types = get_types_from_idl(definition.data)
        else:
            types = get_types_from_msg(definition.data, type_name)
        known = typestore().fielddefs
        typestore().register({name: fields for name, fields in types.items() if name not in known})
