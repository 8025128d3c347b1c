"""What a model's files say about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from norm_core.models.manifest import EngineKind, Manifest, MemoryNeed, Task
from norm_core.records.record import record

# Tactful asks for no more: a longer context takes memory that no prompt of ours uses.
MAX_CONTEXT_TOKENS = 8192
MAX_IMAGES = 15


@record
class FoundModel:
    """An engine, the files that it needs in `folder`, and fields of the manifest; `task` is None where unknown."""

    engine: EngineKind
    task: Task | None
    folder: Path
    files: tuple[str, ...]
    fields: Mapping[str, Any]


def key_value_bytes(layers: Any, heads: Any, head_size: Any) -> int | None:
    """Return the bytes of 16-bit keys and values for a token; None if a number is unknown."""
    numbers = (layers, heads, head_size)
    return 2 * layers * heads * head_size * 2 if all(isinstance(n, int) and n > 0 for n in numbers) else None


def memory_of_files(size_bytes: int, manifest: Manifest) -> MemoryNeed:
    """Estimate memory by the size of the weights, and the peak with the keys and values of a full context."""
    load_mb = max(0.1, round(size_bytes / 1e6, 1))
    cache_mb = (manifest.kv_bytes_per_token or 0) * (manifest.context_tokens or 0) / 1e6
    how = "the size of the files"
    if cache_mb:
        how += f"; at the peak {manifest.kv_bytes_per_token} bytes of keys and values for each token of the context"
    return MemoryNeed(load_mb=load_mb, peak_mb=round(load_mb + cache_mb, 1), estimated=True, how=how)
