"""Read the header of a GGUF file: its metadata and the number of its parameters."""

import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

from norm_core.records.record import record
from norm_core.runtime.config import ConfigError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_ITEMS, _MOST_STRING_BYTES = 10_000_000, 100_000_000


@record
class GgufHeader:
    """The metadata by key; a long list, such as the vocabulary, is left out."""

    metadata: dict[str, Any]
    parameters: int

    def of_architecture(self, key: str) -> Any:
        """Return a value of the model's architecture, such as `context_length`; None if it is absent."""
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}")


def read_gguf_header(path: Path) -> GgufHeader:
    """Return the header; raise ConfigError if the file is no whole GGUF file of version 2 or 3."""
    try:
        with path.open("rb") as stream:
            return _header(stream)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        raise ConfigError(f"{path}: is no whole GGUF file ({error}); download it again") from error


def _header(stream: BinaryIO) -> GgufHeader:
    magic, version, tensors, pairs = struct.unpack("<4sIQQ", stream.read(24))
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError(f"it begins with {magic!r} and version {version}")
    if max(tensors, pairs) > _MOST_ITEMS:
        raise ValueError(f"it names {max(tensors, pairs)} entries")
    metadata = {}
    for _ in range(pairs):
        key = _text(stream)
        value = _value(stream, _number(stream, "I"))
        if value is not None:
            metadata[key] = value
    parameters = 0
    for _ in range(tensors):
        _text(stream)
        dimensions = _number(stream, "I")
        parameters += math.prod(struct.unpack(f"<{dimensions}Q", stream.read(8 * dimensions)))
        stream.read(12)  # its type and its place
    return GgufHeader(metadata=metadata, parameters=parameters)


def _value(stream: BinaryIO, kind: int) -> Any:
    """Return a value; a list is passed over, except for one of few numbers."""
    if kind == _STRING:
        return _text(stream)
    if kind != _ARRAY:
        return _number(stream, _SCALARS[kind])
    inner, count = _number(stream, "I"), _number(stream, "Q")
    if count > _MOST_ITEMS:
        raise ValueError(f"it holds a list of {count}")
    items = [_value(stream, inner) for _ in range(count)]
    return items if inner in _SCALARS and count < 1000 else None


def _text(stream: BinaryIO) -> str:
    length = _number(stream, "Q")
    if length > _MOST_STRING_BYTES:
        raise ValueError(f"it holds a text of {length} bytes")
    content = stream.read(length)
    if len(content) < length:
        raise ValueError("it ends early")
    return content.decode("utf-8", "replace")


def _number(stream: BinaryIO, code: str) -> Any:
    return struct.unpack(f"<{code}", stream.read(struct.calcsize(f"<{code}")))[0]
