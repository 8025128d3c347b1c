"""The folder of the talk reader: its files, and the manifest with their sources."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from norm_core.files.atomic_file import write_atomic
from norm_core.files.data_files import shipped_file
from norm_core.models.store import Lock, Store, find_damages, hash_file

GRAPH = "reader.onnx"
WEIGHTS = "reader.weights"
EMBEDDINGS = "embeddings.npy"
TOKENIZER = "tokenizer.json"
MANIFEST = "reader.json"
# The name of the largest reader that is set up.
AUTO = "auto"
# The name that means no reader.
NO_READER = "none"


class ReaderSize(StrEnum):
    """The sizes of the reader, smallest first. No adapter is shipped for the large one."""

    SMALL = "small"
    MIDDLE = "middle"
    LARGE = "large"


class ReaderManifest(Lock):
    """The sources of a reader's folder; `adapter` is the metadata of the adapter's file.

    `weight_loss` is the mean relative error of the 8-bit weights: the norm of the difference over their norm.
    """

    format: Literal[1] = 1
    base_sha256: str
    adapter_sha256: str
    adapter: dict[str, str]
    max_tokens: int
    layers: int
    key_heads: int
    head_width: int
    weight_loss: float
    size: ReaderSize = ReaderSize.MIDDLE


# The listed model that each size is based on.
BASES = {
    ReaderSize.SMALL: "smollm2-135m-q4",
    ReaderSize.MIDDLE: "qwen2.5-coder-0.5b-q4",
    ReaderSize.LARGE: "qwen2.5-coder-1.5b-q4",
}


def find_reader_folder(size: ReaderSize) -> Path:
    """Return the folder of the reader, which may be absent."""
    return Store().root / f"reader-{size}"


def resolve_reader_name(name: str = AUTO) -> str:
    """Return the name that the environment variable TACTFUL_READER puts in place of AUTO, or the name itself."""
    return os.environ.get("TACTFUL_READER") or AUTO if name == AUTO else name


def find_named_folder(name: str) -> Path | None:
    """Return the folder of a size, a path, or with AUTO of the largest reader that is set up; None for no reader."""
    if name == AUTO:
        folders = map(find_reader_folder, reversed(ReaderSize))
        return next((folder for folder in folders if read_manifest(folder)), None)
    if name in set(ReaderSize):
        return find_reader_folder(ReaderSize(name))
    return None if name == NO_READER else Path(name)


def find_shipped_adapter(size: ReaderSize) -> Path:
    """Return the path of the shipped adapter for a size, which may be absent."""
    return shipped_file("norm_core.models", f"reader_{size}.safetensors")


def read_manifest(folder: Path) -> ReaderManifest | None:
    """Return the manifest of a folder's reader; None if there is none that this version can load."""
    try:
        return ReaderManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_manifest(manifest: ReaderManifest, folder: Path) -> None:
    """Write the file that `read_manifest` reads."""
    write_atomic(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")


def is_written(folder: Path, base_sha256: str, adapter: Path) -> bool:
    """Whether the folder holds an undamaged reader of this base model and adapter."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.base_sha256 != base_sha256:
        return False
    return manifest.adapter_sha256 == hash_file(adapter) and not find_damages(folder, manifest)
