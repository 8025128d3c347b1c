"""Read the header of a GGUF file: its metadata and the number of its parameters; and whether the file is whole."""

import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

from norm_core.records.record import record
from norm_core.runtime.config import ConfigError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_ITEMS, _MOST_STRING_BYTES, _MOST_DIMENSIONS, _MOST_PARAMETERS = 10_000_000, 100_000_000, 4, 10**15
_ALIGNMENT = 32
# How many values of a type form a block, and its bytes, as in ggml; of another type the size is not checked.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74),
    18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
    26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip


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
            beginning = stream.read(16)
            if beginning[:4] != b"GGUF":
                hint = "fetch it with git lfs pull" if beginning.startswith(b"version https") else "name another file"
                raise ConfigError(f"{path}: is no GGUF file, as it begins with {beginning!r}; {hint}")
            stream.seek(0)
            return _header(stream, path.stat().st_size)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        raise ConfigError(f"{path}: is no whole GGUF file ({error}); download it again") from error


def _header(stream: BinaryIO, size_bytes: int) -> GgufHeader:
    _, version, tensors, pairs = struct.unpack("<4sIQQ", stream.read(24))
    if version not in (2, 3):
        raise ValueError(f"its version is {version}, and 2 and 3 can be read")
    if max(tensors, pairs) > _MOST_ITEMS:
        raise ValueError(f"it names {max(tensors, pairs)} entries")
    metadata = {}
    for _ in range(pairs):
        key = _text(stream)
        value = _value(stream, _number(stream, "I"))
        if value is not None:
            metadata[key] = value
    parameters = ends_at = 0
    for _ in range(tensors):
        _text(stream)
        dimensions = _number(stream, "I")
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"it holds a tensor of {dimensions} dimensions")
        values = math.prod(struct.unpack(f"<{dimensions}Q", stream.read(8 * dimensions)))
        parameters += values
        kind, offset = struct.unpack("<IQ", stream.read(12))
        block_values, block_bytes = _BLOCKS.get(kind, (1, 0))
        ends_at = max(ends_at, offset + values // block_values * block_bytes)
    if parameters > _MOST_PARAMETERS:
        raise ValueError(f"it names {parameters} parameters")
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not (isinstance(alignment, int) and alignment > 0):
        raise ValueError(f"its alignment is {alignment!r}")
    needed_bytes = -(-stream.tell() // alignment) * alignment + ends_at
    if tensors and size_bytes < needed_bytes:
        raise ValueError(f"it has {size_bytes} bytes, and its tensors need {needed_bytes}")
    return GgufHeader(metadata=metadata, parameters=parameters)


def _value(stream: BinaryIO, kind: int) -> Any:
    """Return a value; a list is passed over, except for one of few numbers."""
    if kind == _STRING:
        return _text(stream)
    if kind != _ARRAY:
        return _number(stream, _SCALARS[kind])
    inner, count = _number(stream, "I"), _number(stream, "Q")
    if count > _MOST_ITEMS or inner == _ARRAY:
        raise ValueError(f"it holds a list of {count} {'lists' if inner == _ARRAY else 'items'}")
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
