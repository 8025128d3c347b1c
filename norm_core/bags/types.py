"""The message types in a bag: of ROS 2 Jazzy, of Tactful, of installed packages, and of the bag itself."""

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from norm_core.bags.topic import BagError, BagTopic
from norm_core.files.data_files import shipped_file
from norm_core.records.messages import to_message
from norm_core.runtime.errors import TactfulError

# The packages of Tactful's messages, each with the shipped folder and one of its messages.
INTERFACES = {"norm_interfaces": ("interfaces", "SocialFlag"), "norm_bench_interfaces": ("bench_interfaces", "Query")}

_NUMBERS = {
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "byte",
}  # fmt: skip
# The line between two definitions of a bag.
_SEPARATOR = "=" * 80
# A base type that the bag library mistakes for a message.
_WIDE = "/wstring"
# A sqlite3 bag recorded before Iron has no definitions, and a few types have changed since.
_BEFORE_IRON = (Stores.ROS2_HUMBLE, Stores.ROS2_FOXY)


class DefinitionsMissingError(TactfulError, RuntimeError):
    """The definitions of Tactful's messages are missing."""


def find_interfaces_folder(package: str = "norm_interfaces") -> Path:
    """Return the folder of a package's definitions: the shipped one, or else one of an installed workspace."""
    shipped, message = INTERFACES[package]
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    candidates = [
        shipped_file("norm_core.bags", shipped),
        *(Path(prefix, "share", package) for prefix in prefixes),
    ]
    for folder in candidates:
        if (folder / f"msg/{message}.msg").is_file():
            return folder
    searched = ", ".join(map(str, candidates))
    raise DefinitionsMissingError(
        f"the message definitions of {package} are not in {searched}; build ros2_ws and source it"
    )


def read_interface_types() -> dict[str, Any]:
    """Read the definitions of all messages of Tactful."""
    types: dict[str, Any] = {}
    for package in INTERFACES:
        for path in sorted(find_interfaces_folder(package).glob("msg/*.msg")):
            types |= get_types_from_msg(path.read_text(encoding="utf-8"), f"{package}/msg/{path.stem}")
    return types


@cache
def typestore() -> Typestore:
    """Return the types of ROS 2 Jazzy and of Tactful."""
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(read_interface_types())
    return store


def parse_types(type_name: str, definition: str, *, is_idl: bool = False) -> Typestore:
    """Return the types of a complete definition. Raises BagError if it cannot be read."""
    store = get_typestore(Stores.EMPTY)
    try:
        store.register(get_types_from_idl(definition) if is_idl else get_types_from_msg(definition, type_name))
    except Exception as error:  # the bag library raises its parsers' errors
        raise BagError(f"the definition of {type_name} cannot be read: {error}") from error
    return store


def make(message_type: str, values: dict[str, Any]) -> Any:
    """Return a message of the bag library, with lists of numbers as arrays."""
    definition = {name: (kind, detail) for name, (kind, detail) in typestore().fielddefs[message_type][1]}
    for name, value in values.items():
        if isinstance(value, bytes):
            values[name] = np.frombuffer(value, np.uint8)
        elif isinstance(value, list) and (dtype := _find_element_type(definition[name])) in _NUMBERS:
            values[name] = np.array(value, dtype)
    return typestore().types[message_type](**values)


def _find_element_type(field: Any) -> str | None:
    _, ((_, element), _) = field
    return str(element[0]) if isinstance(element, tuple) else None


def serialize(record: object) -> bytes:
    """Return the CDR bytes of a record's message."""
    message = to_message(record, make)
    return bytes(typestore().serialize_cdr(message, message.__msgtype__))


def complete_definition(type_name: str, *sources: Callable[[str], str]) -> str:
    """Return a type's definition with those of all types that it contains, in the format of rosbag2.

    Each definition comes from the first source that has it. Raises BagError if one cannot be read.
    """
    texts: dict[str, str] = {}
    waiting = [type_name]
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        texts[name] = next(text for source in sources if (text := source(name)))
        waiting += sorted(_find_contained_types(name, texts[name]), reverse=True)
    first = texts.pop(type_name)
    texts_by_short_name = {name.replace("/msg/", "/"): text for name, text in texts.items()}  # as rosbag2 writes them
    return "\n".join([first, *(f"{_SEPARATOR}\nMSG: {name}\n{text}" for name, text in texts_by_short_name.items())])


def compute_definition_digest(type_name: str, definition: str) -> str:
    """Return the hash (RIHS01) of a complete definition; empty if the bag library cannot compute it."""
    try:
        return str(parse_types(type_name, definition).hash_rihs01(type_name))
    except Exception:  # noqa: BLE001 - the bag library raises errors of many kinds, such as for wide strings
        return ""


def read_message_file(type_name: str) -> str:
    """Return the text of a type's installed `.msg` file; empty if there is none."""
    path = _find_shared_file(type_name, ".msg")
    if path is None:
        return ""
    text = path.read_text(encoding="utf-8").strip() or "# no fields"  # an empty definition counts as missing
    return f"{text}\n"


def read_installed_digest(type_name: str) -> str:
    """Return the hash (RIHS01) of the installed definition; empty if the package does not state it."""
    path = _find_shared_file(type_name, ".json")
    if path is None:
        return ""
    hashes = json.loads(path.read_text(encoding="utf-8")).get("type_hashes", [])
    return next((entry["hash_string"] for entry in hashes if entry["type_name"] == type_name), "")


def _find_shared_file(type_name: str, suffix: str) -> Path | None:
    package, kind, name = type_name.split("/")
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    paths = (Path(prefix, "share", package, kind, name + suffix) for prefix in prefixes)
    return next((path for path in paths if path.is_file()), None)


def _find_contained_types(type_name: str, text: str) -> Iterator[str]:
    try:
        ((_, fields),) = get_types_from_msg(text, type_name).values()
    except Exception as error:  # the bag library raises its parser's errors
        raise BagError(f"the definition of {type_name} cannot be read: {str(error).splitlines()[0]}") from error
    for _, field in fields:
        item: Any = field[1][0] if field[0] in {Nodetype.ARRAY, Nodetype.SEQUENCE} else field
        if item[0] is Nodetype.NAME and not item[1].endswith(_WIDE):
            yield item[1]


class Definitions:
    """The types of one bag. Its foreign types apply to no other bag."""

    def __init__(self) -> None:
        self._stores: dict[str, tuple[Typestore, ...]] = {}

    def decode(self, topic: BagTopic, data: bytes) -> Any:
        """Return a message of the bag library. Raises BagError for an unknown type, any error for damaged bytes."""
        stores = self._get_stores(topic)
        for store in stores:
            try:
                return store.deserialize_cdr(data, topic.type_name)
            except Exception:  # generated code may raise any error; an older store may still fit
                if store is stores[-1]:
                    raise
        raise AssertionError("a type has at least one store")

    def is_known(self, topic: BagTopic) -> bool:
        """Return whether the topic's type can be decoded."""
        try:
            return bool(self._get_stores(topic))
        except BagError:
            return False

    def is_of_another_version(self, topic: BagTopic) -> bool:
        """Return whether the bag defines one of Tactful's types differently from this version."""
        return typestore() not in self._get_stores(topic)

    def _get_stores(self, topic: BagTopic) -> tuple[Typestore, ...]:
        stores = self._stores.get(topic.type_name)
        if stores is None:
            stores = self._stores[topic.type_name] = _find_stores(topic)
        return stores


def _find_stores(topic: BagTopic) -> tuple[Typestore, ...]:
    name = topic.type_name
    our_store = typestore()
    if topic.serialization != "cdr":
        raise BagError(f"{topic.topic} is in {topic.serialization or 'no stated form'}, and only CDR is decoded")
    definition = topic.definition.strip()
    is_ours = name.partition("/")[0] in INTERFACES
    if name in our_store.fielddefs and is_ours != bool(definition):
        return (our_store,)
    if definition:
        try:
            bag_store = parse_types(name, definition, is_idl=topic.is_idl)
        except BagError as error:
            raise BagError(f"{topic.topic}: {error}") from error
        # Where another version of Tactful recorded the topic, the bag's own definition fits its bytes.
        is_same = name in our_store.fielddefs and bag_store.hash_rihs01(name) == our_store.hash_rihs01(name)
        return (our_store if is_same else bag_store,)
    stores = tuple(store for store in (*map(get_typestore, _BEFORE_IRON), our_store) if name in store.fielddefs)
    if not stores:
        raise BagError(
            f"{topic.topic} holds {name} without its definition, as sqlite3 bags recorded before ROS 2 Iron do, and it "
            "is not known here: convert the bag to MCAP on the machine that has the type (ros2 bag convert)"
        )
    return stores
