"""Read safetensors files without torch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.models.store import WeightsError
from norm_core.records.record import record

_MAX_HEADER_BYTES = 100_000_000
_DTYPES = {"F32": np.float32, "F16": np.float16}


@record
class SafetensorsHeader:
    """The entries by tensor name, the metadata, and the offset of the tensors."""

    entries: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    tensors_offset: int


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read the header of a file. Raises WeightsError if the file is cut off or invalid."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER_BYTES:
                raise ValueError(f"its header has {length} bytes")
            header = json.loads(stream.read(length))
        metadata = {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        end = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if (size := path.stat().st_size) < end:
            raise ValueError(f"it has {size} of {end} bytes")
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise WeightsError(f"{path}: is not a complete safetensors file: {error}; download it again") from error
    return SafetensorsHeader(entries=entries, metadata=metadata, tensors_offset=8 + length)


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the floating-point tensors of a file by name. Raises WeightsError if the file is invalid."""
    header = read_safetensors_header(path)
    body = memoryview(path.read_bytes())[header.tensors_offset :]
    try:
        return {
            name: np.frombuffer(body[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            .astype(np.float32)
            for name, entry in header.entries.items()
            if entry["dtype"] in _DTYPES
        }
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{path}: is not a complete safetensors file: {error}; download it again") from error
