"""Find the definition of a message type in the installed ROS packages, complete, as a bag carries it."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import get_types_from_msg

from norm_core.bags.errors import BagError
from norm_core.bags.types import stated_types

_SEPARATOR = "=" * 80
_WIDE = "/wstring"  # a base type, which the bag library takes for a message


def complete_definition(type_name: str, *sources: Callable[[str], str]) -> str:
    """Return a type's definition with those of all types that it contains, in the form of rosbag2.

    Each text is that of the first source that has one. Raises BagError where a text cannot be read.
    """
    texts: dict[str, str] = {}
    waiting = [type_name]
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        texts[name] = next(text for source in sources if (text := source(name)))
        waiting += sorted(_contained(name, texts[name]), reverse=True)
    first = texts.pop(type_name)
    short = {name.replace("/msg/", "/"): text for name, text in texts.items()}  # as rosbag2 writes them
    return "\n".join([first, *(f"{_SEPARATOR}\nMSG: {name}\n{text}" for name, text in short.items())])


def definition_digest(type_name: str, definition: str) -> str:
    """Compute the hash (RIHS01) of a complete definition as the bag library does; empty if it cannot."""
    try:
        return str(stated_types(type_name, definition).hash_rihs01(type_name))
    except Exception:  # noqa: BLE001 - the bag library raises errors of many kinds, such as for wide strings
        return ""


def message_file(type_name: str) -> str:
    """Return the text of a type's installed `.msg` file, or nothing."""
    path = _shared(type_name, ".msg")
    if path is None:
        return ""
    text = path.read_text(encoding="utf-8").strip() or "# no fields"  # an empty definition counts as missing
    return f"{text}\n"


def installed_digest(type_name: str) -> str:
    """Return the hash (RIHS01) of the installed definition; empty if the package does not state it."""
    path = _shared(type_name, ".json")
    if path is None:
        return ""
    hashes = json.loads(path.read_text(encoding="utf-8")).get("type_hashes", [])
    return next((entry["hash_string"] for entry in hashes if entry["type_name"] == type_name), "")


def _shared(type_name: str, suffix: str) -> Path | None:
    package, kind, name = type_name.split("/")
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    paths = (Path(prefix, "share", package, kind, name + suffix) for prefix in prefixes)
    return next((path for path in paths if path.is_file()), None)


def _contained(type_name: str, text: str) -> Iterator[str]:
    try:
        ((_, fields),) = get_types_from_msg(text, type_name).values()
    except Exception as error:  # the bag library raises its parser's errors
        raise BagError(f"the definition of {type_name} cannot be read: {str(error).splitlines()[0]}") from error
    for _, field in fields:
        item: Any = field[1][0] if field[0] in {Nodetype.ARRAY, Nodetype.SEQUENCE} else field
        if item[0] is Nodetype.NAME and not item[1].endswith(_WIDE):
            yield item[1]
