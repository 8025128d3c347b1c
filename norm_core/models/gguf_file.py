"""Read a GGUF file with numpy alone: its metadata, and its tensors as float32."""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.models.store import WeightsError, hash_file
from norm_core.records.record import record

Floats = NDArray[np.float32]
Blocks = NDArray[np.uint8]

# The struct format of each scalar type of metadata.
_SCALAR_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# Further types of metadata.
_STRING = 8
_ARRAY = 9
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
# The types that are not decoded: the bytes of a block by type, by the number of values in it.
_OTHER_BLOCKS = {
    1: {24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2},
    32: {7: 24, 20: 18, 39: 17},
    256: {
        10: 84, 11: 110, 13: 176, 15: 292, 16: 66, 17: 74, 18: 98, 19: 50, 21: 110, 22: 82, 23: 136, 29: 56, 34: 54,
        35: 66,
    },
}  # fmt: skip


def _read_half(blocks: Blocks, offset: int) -> Floats:
    return blocks[:, offset : offset + 2].copy().view(np.float16).astype(np.float32)


def _split_nibbles(packed: Blocks) -> Blocks:
    """Return the low halves of all bytes, then the high halves, along the last axis."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _decode_q4_0(blocks: Blocks) -> Floats:
    return (_split_nibbles(blocks[:, 2:]).astype(np.float32) - 8) * _read_half(blocks, 0)


def _decode_q4_1(blocks: Blocks) -> Floats:
    return _split_nibbles(blocks[:, 4:]).astype(np.float32) * _read_half(blocks, 0) + _read_half(blocks, 2)


def _decode_q5_0(blocks: Blocks) -> Floats:
    fifth = np.unpackbits(blocks[:, 2:6], axis=-1, bitorder="little") << 4
    return ((_split_nibbles(blocks[:, 6:]) | fifth).astype(np.float32) - 16) * _read_half(blocks, 0)


def _decode_q8_0(blocks: Blocks) -> Floats:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _read_half(blocks, 0)


def _decode_q4_k(blocks: Blocks) -> Floats:
    low, high, mixed = (blocks[:, start : start + 4] for start in (4, 8, 12))
    scales = np.concatenate([low & 63, (mixed & 15) | (low >> 6 << 4)], axis=-1).astype(np.float32)
    offsets = np.concatenate([high & 63, (mixed >> 4) | (high >> 6 << 4)], axis=-1).astype(np.float32)
    codes = _split_nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    scaled: Floats = codes * (scales * _read_half(blocks, 0))[..., None] - (offsets * _read_half(blocks, 2))[..., None]
    return scaled.reshape(-1, 256)


def _decode_q6_k(blocks: Blocks) -> Floats:
    low = _split_nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    pairs = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    codes = (low | pairs << 4).astype(np.float32).reshape(-1, 16, 16) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * _read_half(blocks, 208)
    return (codes * scales[..., None]).reshape(-1, 256)


# By the number of a type in GGML: its name, the values and bytes of a block, and the function that decodes blocks.
_TYPES: dict[int, tuple[str, int, int, Callable[[Blocks], Floats]]] = {
    0: ("F32", 1, 4, lambda blocks: blocks.view(np.float32)),
    1: ("F16", 1, 2, lambda blocks: blocks.view(np.float16).astype(np.float32)),
    2: ("Q4_0", 32, 18, _decode_q4_0),
    3: ("Q4_1", 32, 20, _decode_q4_1),
    6: ("Q5_0", 32, 22, _decode_q5_0),
    8: ("Q8_0", 32, 34, _decode_q8_0),
    12: ("Q4_K", 256, 144, _decode_q4_k),
    14: ("Q6_K", 256, 210, _decode_q6_k),
}
# The values and the bytes of a block by type; the size of an unknown type is not checked.
_BLOCKS = {number: (values, size) for number, (_, values, size, _) in _TYPES.items()} | {
    number: (values, size) for values, sizes in _OTHER_BLOCKS.items() for number, size in sizes.items()
}


@record
class _Tensor:
    """The type, shape and offset of a tensor."""

    type_number: int
    shape: tuple[int, ...]
    offset: int


class GgufFile:
    """A memory-mapped file: `metadata` by key, and tensors that are decoded on demand."""

    def __init__(self, path: Path) -> None:
        """Read the header. Raises WeightsError if the file cannot be read, is cut off or is not a GGUF file."""
        self.path = path
        try:
            self._bytes = np.memmap(path, np.uint8, mode="r")
        except OSError as error:
            raise WeightsError(f"{path}: cannot be read: {error.strerror}; check the path") from error
        except ValueError as error:
            raise self._make_error("it is empty") from error
        self._offset = 4
        self.metadata: dict[str, Any] = {}
        try:
            self._tensors = self._read_header()
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise self._make_error(str(error)) from error

    @cached_property
    def sha256(self) -> str:
        """The hash of the file."""
        return hash_file(self.path)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor by name, outermost dimension first."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def read_tensor(self, name: str, rows: slice = slice(None)) -> Floats:
        """Return a tensor, or a range of its rows, as float32. Raises WeightsError if that is not possible."""
        if name not in self._tensors:
            raise WeightsError(f"{self.path}: has no tensor {name}; take another file of the model")
        tensor = self._tensors[name]
        if tensor.type_number not in _TYPES:
            known_types = ", ".join(entry[0] for entry in _TYPES.values())
            raise self._make_error(f"{name} has the type {tensor.type_number} of GGML, and {known_types} can be read")
        _, values, size, decode = _TYPES[tensor.type_number]
        if tensor.shape[-1] % values:
            raise self._make_error(f"a row of {name} is not a whole number of blocks")
        width = tensor.shape[-1] // values * size
        end = tensor.offset + math.prod(tensor.shape[:-1]) * width
        table = self._bytes[tensor.offset : end].reshape(-1, width)
        chosen_rows = np.ascontiguousarray(table[rows])
        values_read = decode(chosen_rows.reshape(-1, size))
        return values_read.reshape(len(chosen_rows), tensor.shape[-1]).reshape(-1, *tensor.shape[1:])

    def _read_header(self) -> dict[str, _Tensor]:
        beginning = bytes(self._bytes[:16])
        if beginning[:4] != b"GGUF":
            hint = "fetch it with git lfs pull" if beginning.startswith(b"version https") else "name another file"
            raise WeightsError(f"{self.path}: is not a GGUF file, because it begins with {beginning!r}; {hint}")
        version, tensor_count, value_count = self._unpack("IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}, and 2 and 3 can be read")
        for _ in range(value_count):
            key = self._read_string()
            self.metadata[key] = self._read_value(*self._unpack("I"))
        tensors = dict(self._read_tensor_entry() for _ in range(tensor_count))
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"its alignment is {alignment!r}")
        start = -(-self._offset // alignment) * alignment
        end = 0
        for tensor in tensors.values():
            values, size = _BLOCKS.get(tensor.type_number, (1, 0))
            end = max(end, start + tensor.offset + math.prod(tensor.shape) // values * size)
        if end > len(self._bytes):
            raise ValueError(f"it has {len(self._bytes)} bytes, and its tensors need {end}")
        return {name: replace(tensor, offset=start + tensor.offset) for name, tensor in tensors.items()}

    def _read_tensor_entry(self) -> tuple[str, _Tensor]:
        name = self._read_string()
        (dimensions,) = self._unpack("I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise ValueError(f"{name} has {dimensions} dimensions")
        *shape, type_number, offset = self._unpack(f"{dimensions}QIQ")
        return name, _Tensor(type_number=type_number, shape=tuple(reversed(shape)), offset=offset)

    def _read_value(self, type_number: int) -> Any:
        if type_number == _STRING:
            return self._read_string()
        if type_number != _ARRAY:
            return self._unpack(_SCALAR_FORMATS[type_number])[0]
        item_type, count = self._unpack("IQ")
        if item_type == _ARRAY:
            raise ValueError(f"it holds a list of {count} lists")
        if item_type in _SCALAR_FORMATS:
            return list(self._unpack(f"{self._check_count(count)}{_SCALAR_FORMATS[item_type]}"))
        return [self._read_value(item_type) for _ in range(self._check_count(count))]

    def _read_string(self) -> str:
        (length,) = self._unpack("Q")
        text = bytes(self._bytes[self._offset : self._offset + self._check_count(length)])
        self._offset += length
        return text.decode("utf-8", "replace")

    def _check_count(self, count: int) -> int:
        """Return the count. Raises ValueError if the rest of the file is shorter."""
        if count > len(self._bytes) - self._offset:
            raise ValueError("it is cut off")
        return count

    def _unpack(self, format_text: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{format_text}", self._bytes.data, self._offset)
        self._offset += struct.calcsize(f"<{format_text}")
        return values

    def _make_error(self, reason: str) -> WeightsError:
        return WeightsError(f"{self.path}: is not a complete GGUF file ({reason}); download it again")
