"""A topic of a bag."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos, QosDurability, QosHistory
from rosbags.rosbag2.metadata import parse_qos

from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, parse_yaml
from norm_core.runtime.errors import TactfulError


class BagError(TactfulError, ValueError):
    """A bag cannot be read; the message gives the problem and the remedy."""


@record
class BagTopic:
    """One topic and its type; a definition or digest is empty if the bag lacks it."""

    topic: str
    type_name: str
    message_count: int = 0
    definition: str = ""
    is_idl: bool = False  # whether the definition is IDL, not the format of .msg files
    digest: str = ""
    serialization: str = "cdr"
    qos: tuple[Qos, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The topic's name and type."""
        return self.topic, self.type_name

    @property
    def latched_depth(self) -> int:
        """The number of messages that a late subscriber receives; 0 if the topic is not latched."""
        depths = [
            1_000_000 if qos.history is QosHistory.KEEP_ALL else max(1, qos.depth)
            for qos in self.qos
            if qos.durability is QosDurability.TRANSIENT_LOCAL
        ]
        return sum(depths)

    def with_messages_of(self, other: "BagTopic") -> "BagTopic":
        """Return this topic with another file's messages added."""
        return replace(
            self,
            message_count=self.message_count + other.message_count,
            definition=self.definition or other.definition,
            is_idl=self.is_idl if self.definition else other.is_idl,
            digest=self.digest or other.digest,
            qos=self.qos or other.qos,
        )


def describe_topic(connection: Connection, digest: str = "") -> BagTopic:
    """Return the topic of a bag-library connection; `digest` is the fallback for a connection without one."""
    extension = connection.ext
    ros2 = extension if isinstance(extension, ConnectionExtRosbag2) else None
    return BagTopic(
        topic=connection.topic,
        type_name=connection.msgtype,
        message_count=connection.msgcount,
        definition=connection.msgdef.data,
        is_idl=connection.msgdef.format.name == "IDL",
        digest=connection.digest or digest,
        serialization=ros2.serialization_format if ros2 else "",
        qos=tuple(ros2.offered_qos_profiles) if ros2 else (),
    )


def read_qos(stated: Any) -> list[Qos]:
    """Return the QoS profiles that a bag states for a topic, in YAML or plain; none if they cannot be read."""
    if isinstance(stated, str):
        return list(_parse_qos_text(stated))
    try:
        return parse_qos(stated)
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


# Parsing would dominate the time to open a bag, and most topics state the same profiles.
@lru_cache(maxsize=256)
def _parse_qos_text(text: str) -> tuple[Qos, ...]:
    try:
        return tuple(parse_qos(parse_yaml(text, "offered_qos_profiles")))
    except (ConfigError, KeyError, TypeError, ValueError, AttributeError):
        return ()
