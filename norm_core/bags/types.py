"""The message types in a bag: those of ROS 2 Jazzy and those of norm_interfaces."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from norm_core.bags.errors import BagError
from norm_core.records.messages import to_message
from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError

SHIPPED = shipped_file("norm_core.bags", "interfaces")

_NUMBERS = {
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "byte",
}  # fmt: skip


class DefinitionsMissingError(TactfulError, RuntimeError):
    """The definitions of norm_interfaces are missing."""


def interfaces_folder() -> Path:
    """Return the folder of norm_interfaces' definitions: as shipped, or else in an installed workspace."""
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    candidates = [SHIPPED, *(Path(prefix, "share/norm_interfaces") for prefix in prefixes)]
    for folder in candidates:
        if (folder / "msg/SocialFlag.msg").is_file():
            return folder
    looked = ", ".join(map(str, candidates))
    raise DefinitionsMissingError(
        f"the message definitions of norm_interfaces are not in {looked}; build ros2_ws and source it"
    )


@cache
def typestore() -> Typestore:
    """Return the types of ROS 2 Jazzy and norm_interfaces."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types: dict[str, Any] = {}
    for path in sorted(interfaces_folder().glob("msg/*.msg")):
        types |= get_types_from_msg(path.read_text(encoding="utf-8"), f"norm_interfaces/msg/{path.stem}")
    store.register(types)
    return store


def stated_types(type_name: str, definition: str, *, is_idl: bool = False) -> Typestore:
    """Return the types of a complete definition; raise BagError if it cannot be read."""
    store = get_typestore(Stores.EMPTY)
    try:
        store.register(get_types_from_idl(definition) if is_idl else get_types_from_msg(definition, type_name))
    except Exception as error:  # the bag library raises its parsers' errors
        raise BagError(f"the definition of {type_name} cannot be read: {error}") from error
    return store


def make(message_type: str, values: dict[str, Any]) -> Any:
    """Return a message of the bag library; lists of numbers become the arrays that it serializes."""
    definition = {name: (kind, detail) for name, (kind, detail) in typestore().fielddefs[message_type][1]}
    for name, value in values.items():
        if isinstance(value, bytes):
            values[name] = np.frombuffer(value, np.uint8)
        elif isinstance(value, list) and (dtype := _element_type(definition[name])) in _NUMBERS:
            values[name] = np.array(value, dtype)
    return typestore().types[message_type](**values)


def _element_type(field: Any) -> str | None:
    _, ((_, element), _) = field
    return str(element[0]) if isinstance(element, tuple) else None


def serialize(record: object) -> bytes:
    """Return the CDR bytes of a record's message."""
    message = to_message(record, make)
    return bytes(typestore().serialize_cdr(message, message.__msgtype__))
