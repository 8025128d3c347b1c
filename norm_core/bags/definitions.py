"""Decode the messages of one bag: with this project's types, with the bag's own, or with those of an old ROS 2."""

from dataclasses import replace
from typing import Any

from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from norm_core.bags.errors import BagError
from norm_core.bags.topic import BagTopic
from norm_core.bags.types import stated_types, typestore

# A sqlite3 bag recorded before Iron has no definitions; a few types of that time have changed.
_BEFORE_IRON = (Stores.ROS2_HUMBLE, Stores.ROS2_FOXY)


class Definitions:
    """The types of one bag. Its foreign types apply to no other bag."""

    def __init__(self) -> None:
        self._stores: dict[str, tuple[Typestore, ...]] = {}
        self._fitting: dict[str, Typestore] = {}
        self._completed: dict[tuple[str, str], BagTopic] = {}

    def decode(self, topic: BagTopic, data: bytes) -> Any:
        """Return a message of the bag library; raise BagError for an unknown type, or any error for damaged bytes."""
        return self._decoded(topic, data)[0]

    def is_known(self, topic: BagTopic) -> bool:
        """Whether the topic's type can be decoded."""
        try:
            return bool(self._stores_of(topic))
        except BagError:
            return False

    def is_of_another_version(self, topic: BagTopic) -> bool:
        """Whether the bag's definition of one of our types is not that of today."""
        return typestore() not in self._stores_of(topic)

    def encode(self, type_name: str, message: Any) -> bytes:
        """Return a message's bytes, by the definition that last fitted a message of its type."""
        return bytes(self._fitting[type_name].serialize_cdr(message, type_name))

    def completed(self, topic: BagTopic, data: bytes) -> BagTopic:
        """Return the topic with the definition and digest that fit its first message; empty if unknown."""
        if topic.key not in self._completed:
            self._completed[topic.key] = self._complete(topic, data)
        return self._completed[topic.key]

    def _complete(self, topic: BagTopic, data: bytes) -> BagTopic:
        if topic.definition.strip() and topic.digest:
            return topic
        try:
            _, store = self._decoded(topic, data)
            definition, _ = store.generate_msgdef(topic.type_name, ros_version=2)
            digest = store.hash_rihs01(topic.type_name)
        except Exception:  # noqa: BLE001 as above; a copy keeps the bytes of a type that cannot be read
            return topic
        if topic.definition.strip():
            return replace(topic, digest=digest)
        return replace(topic, definition=definition, is_idl=False, digest=digest)

    def _decoded(self, topic: BagTopic, data: bytes) -> tuple[Any, Typestore]:
        stores = self._stores_of(topic)
        for store in stores:
            try:
                decoded = store.deserialize_cdr(data, topic.type_name)
            except Exception:  # generated code may raise any error; an older store may still fit
                if store is stores[-1]:
                    raise
            else:
                self._fitting[topic.type_name] = store
                return decoded, store
        raise AssertionError("a type has at least one store")

    def _stores_of(self, topic: BagTopic) -> tuple[Typestore, ...]:
        stores = self._stores.get(topic.type_name)
        if stores is None:
            stores = self._stores[topic.type_name] = _stores_for(topic)
        return stores


def _stores_for(topic: BagTopic) -> tuple[Typestore, ...]:
    name = topic.type_name
    ours = typestore()
    if topic.serialization != "cdr":
        raise BagError(f"{topic.topic} is in {topic.serialization or 'no stated form'}, and only CDR is decoded")
    stated, is_ours = topic.definition.strip(), name.startswith("norm_interfaces/")
    if name in ours.fielddefs and is_ours != bool(stated):
        return (ours,)
    if stated:
        try:
            own = stated_types(name, stated, is_idl=topic.is_idl)
        except BagError as error:
            raise BagError(f"{topic.topic}: {error}") from error
        # Where another version of Tactful recorded the topic, the bag's own definition fits its bytes.
        is_same = name in ours.fielddefs and own.hash_rihs01(name) == ours.hash_rihs01(name)
        return (ours if is_same else own,)
    stores = tuple(store for store in (*map(get_typestore, _BEFORE_IRON), ours) if name in store.fielddefs)
    if not stores:
        raise BagError(
            f"{topic.topic} holds {name} without its definition, as sqlite3 bags recorded before ROS 2 Iron do, and it "
            "is not known here: convert the bag to MCAP on the machine that has the type (ros2 bag convert)"
        )
    return stores
