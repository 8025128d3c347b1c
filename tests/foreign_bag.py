"""Bags that hold messages of foreign definitions, two of which may share one name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from norm_core.bags.types import make, read_interface_types
from norm_core.records.messages import to_message
from tests.foreign_interfaces import Definitions


def typestore(definitions: Definitions) -> Typestore:
    """The types of ROS 2, of Tactful and of definitions."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types = read_interface_types()
    for package, messages in definitions.items():
        for name, text in messages.items():
            types |= get_types_from_msg(text, f"{package}/msg/{name}")
    store.register(types)
    return store


class Maker:
    """Makes messages of a type store by name."""

    def __init__(self, definitions: Definitions) -> None:
        self.store = typestore(definitions)

    def __call__(self, type_name: str, values: dict[str, Any]) -> Any:
        return self.store.types[type_name](**values)

    def header(self, stamp_ns: int) -> Any:
        sec, nanosec = divmod(stamp_ns, 1_000_000_000)
        stamp = self("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
        return self("std_msgs/msg/Header", {"stamp": stamp, "frame_id": ""})

    def of(self, record: object) -> Any:
        return to_message(record, make)


def write(path: Path, make: Maker, messages: Iterable[tuple[int, str, Any]]) -> Path:
    """A bag of messages, each with its stamp and its topic."""
    with Writer(path, version=Writer.VERSION_LATEST, storage_plugin=StoragePlugin.MCAP) as writer:
        connections: dict[str, Any] = {}
        for stamp_ns, topic, message in sorted(messages, key=lambda entry: entry[0]):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, message.__msgtype__, typestore=make.store)
            data = make.store.serialize_cdr(message, message.__msgtype__)
            writer.write(connections[topic], stamp_ns, bytes(data))
    return path


def int16(samples: Any) -> Any:
    return np.clip(np.asarray(samples) * 32_768, -32_768, 32_767).astype(np.int16)
