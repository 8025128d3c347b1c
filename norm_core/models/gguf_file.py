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

from norm_core.models.store import WeightsError, sha256_of_file
from norm_core.records.record import record

Floats = NDArray[np.float32]
Blocks = NDArray[np.uint8]

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
# Types that are not decoded: the bytes of a block by type, by the number of values in it.
_OTHER_BLOCKS = {
    1: {24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2},
    32: {7: 24, 20: 18, 39: 17},
    256: {
        10: 84, 11: 110, 13: 176, 15: 292, 16: 66, 17: 74, 18: 98, 19: 50, 21: 110, 22: 82, 23: 136, 29: 56, 34: 54,
        35: 66,
    },
}  # fmt: skip


def _half(blocks: Blocks, at: int) -> Floats:
    return blocks[:, at : at + 2].copy().view(np.float16).astype(np.float32)


def _nibbles(packed: Blocks) -> Blocks:
    """Return the low halves of all bytes, then the high halves, along the last axis."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _q4_0(blocks: Blocks) -> Floats:
    return (_nibbles(blocks[:, 2:]).astype(np.float32) - 8) * _half(blocks, 0)


def _q4_1(blocks: Blocks) -> Floats:
    return _nibbles(blocks[:, 4:]).astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks: Blocks) -> Floats:
    fifth = np.unpackbits(blocks[:, 2:6], axis=-1, bitorder="little") << 4
    return ((_nibbles(blocks[:, 6:]) | fifth).astype(np.float32) - 16) * _half(blocks, 0)


def _q8_0(blocks: Blocks) -> Floats:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _half(blocks, 0)


def _q4_k(blocks: Blocks) -> Floats:
    low, high, mixed = (blocks[:, start : start + 4] for start in (4, 8, 12))
    scales = np.concatenate([low & 63, (mixed & 15) | (low >> 6 << 4)], axis=-1).astype(np.float32)
    offsets = np.concatenate([high & 63, (mixed >> 4) | (high >> 6 << 4)], axis=-1).astype(np.float32)
    codes = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    scaled: Floats = codes * (scales * _half(blocks, 0))[..., None] - (offsets * _half(blocks, 2))[..., None]
    return scaled.reshape(-1, 256)


def _q6_k(blocks: Blocks) -> Floats:
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    pairs = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    codes = (low | pairs << 4).astype(np.float32).reshape(-1, 16, 16) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * _half(blocks, 208)
    return (codes * scales[..., None]).reshape(-1, 256)


# GGML's number of a type: its name, the values and bytes of a block, and the function that decodes blocks.
_TYPES: dict[int, tuple[str, int, int, Callable[[Blocks], Floats]]] = {
    0: ("F32", 1, 4, lambda blocks: blocks.view(np.float32)),
    1: ("F16", 1, 2, lambda blocks: blocks.view(np.float16).astype(np.float32)),
    2: ("Q4_0", 32, 18, _q4_0),
    3: ("Q4_1", 32, 20, _q4_1),
    6: ("Q5_0", 32, 22, _q5_0),
    8: ("Q8_0", 32, 34, _q8_0),
    12: ("Q4_K", 256, 144, _q4_k),
    14: ("Q6_K", 256, 210, _q6_k),
}


# The values and the bytes of a block by type; the size of an unknown type is not checked.
_BLOCKS = {kind: (values, size) for kind, (_, values, size, _) in _TYPES.items()} | {
    kind: (values, size) for values, kinds in _OTHER_BLOCKS.items() for kind, size in kinds.items()
}


@record
class _Tensor:
    kind: int
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
            raise self._fault("it is empty") from error
        self._at = 4
        self.metadata: dict[str, Any] = {}
        try:
            self._tensors = self._header()
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise self._fault(str(error)) from error

    @cached_property
    def sha256(self) -> str:
        """The hash of the file."""
        return sha256_of_file(self.path)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each tensor by name, outermost dimension first."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def tensor(self, name: str, rows: slice = slice(None)) -> Floats:
        """Return a tensor, or a range of its rows, as float32."""
        if name not in self._tensors:
            raise WeightsError(f"{self.path}: holds no tensor {name}; take another file of the model")
        tensor = self._tensors[name]
        if tensor.kind not in _TYPES:
            readable = ", ".join(entry[0] for entry in _TYPES.values())
            raise self._fault(f"{name} has GGML's type {tensor.kind}, and {readable} are read")
        _, values, size, decode = _TYPES[tensor.kind]
        if tensor.shape[-1] % values:
            raise self._fault(f"a row of {name} is no whole number of blocks")
        width = tensor.shape[-1] // values * size
        start = tensor.offset
        table = self._bytes[start : start + math.prod(tensor.shape[:-1]) * width].reshape(-1, width)
        part = np.ascontiguousarray(table[rows])
        return decode(part.reshape(-1, size)).reshape(len(part), tensor.shape[-1]).reshape(-1, *tensor.shape[1:])

    def of_architecture(self, key: str) -> Any:
        """Return a value of the model's architecture, such as `context_length`; None if it is absent."""
        return self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}")

    def _header(self) -> dict[str, _Tensor]:
        beginning = bytes(self._bytes[:16])
        if beginning[:4] != b"GGUF":
            hint = "fetch it with git lfs pull" if beginning.startswith(b"version https") else "name another file"
            raise WeightsError(f"{self.path}: is no GGUF file, as it begins with {beginning!r}; {hint}")
        version, tensor_count, value_count = self._take("IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}, and 2 and 3 can be read")
        for _ in range(value_count):
            key = self._string()
            self.metadata[key] = self._value(*self._take("I"))
        tensors = dict(self._tensor_entry() for _ in range(tensor_count))
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"its alignment is {alignment!r}")
        start = -(-self._at // alignment) * alignment
        ends_at = 0
        for tensor in tensors.values():
            values, size = _BLOCKS.get(tensor.kind, (1, 0))
            ends_at = max(ends_at, start + tensor.offset + math.prod(tensor.shape) // values * size)
        if ends_at > len(self._bytes):
            raise ValueError(f"it has {len(self._bytes)} bytes, and its tensors need {ends_at}")
        return {name: replace(tensor, offset=start + tensor.offset) for name, tensor in tensors.items()}

    def _tensor_entry(self) -> tuple[str, _Tensor]:
        name = self._string()
        (dimensions,) = self._take("I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise ValueError(f"{name} has {dimensions} dimensions")
        *shape, kind, offset = self._take(f"{dimensions}QIQ")
        return name, _Tensor(kind=kind, shape=tuple(reversed(shape)), offset=offset)

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._take(_SCALARS[kind])[0]
        inner, count = self._take("IQ")
        if inner == _ARRAY:
            raise ValueError(f"it holds a list of {count} lists")
        if inner in _SCALARS:
            return list(self._take(f"{self._bounded(count)}{_SCALARS[inner]}"))
        return [self._value(inner) for _ in range(self._bounded(count))]

    def _string(self) -> str:
        (length,) = self._take("Q")
        text = bytes(self._bytes[self._at : self._at + self._bounded(length)])
        self._at += length
        return text.decode("utf-8", "replace")

    def _bounded(self, count: int) -> int:
        """Return the count; raise ValueError if the rest of the file is shorter."""
        if count > len(self._bytes) - self._at:
            raise ValueError("it is cut off")
        return count

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._bytes.data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _fault(self, reason: str) -> WeightsError:
        return WeightsError(f"{self.path}: is no whole GGUF file ({reason}); download it again")
