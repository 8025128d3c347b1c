"""Read the header of a safetensors file: its tensors' types, shapes and places."""

import json
from pathlib import Path
from typing import Any

from norm_core.engines.errors import EngineFailedError

_MAX_HEADER_BYTES = 100_000_000


def read_safetensors_header(path: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the entries by tensor name, and where the tensors begin; raise EngineFailedError if it is not whole."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER_BYTES:
                raise ValueError(f"its header has {length} bytes")
            header = json.loads(stream.read(length))
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        ends_at = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        if (size := path.stat().st_size) < ends_at:
            raise ValueError(f"it has {size} of {ends_at} bytes")
    except OSError as error:
        raise EngineFailedError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise EngineFailedError(f"{path}: is no whole safetensors file: {error}; download it again") from error
    return entries, 8 + length
