"""The files of a bag, and the message counts that its metadata.yaml states."""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from norm_core.bags.errors import BagError
from norm_core.records.record import record
from norm_core.runtime.config import ConfigError, load_config

METADATA = "metadata.yaml"
STORED_AS = (".mcap", ".db3")
_PACKED = ".zstd"  # a whole file, compressed after its recording ended


@record
class Listing:
    """The files in recording order; stated counts and digests are empty if the bag has none."""

    files: tuple[Path, ...]
    promised: dict[str, int]
    digests: dict[str, str]
    notes: tuple[str, ...] = ()


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Topic(_Part):
    name: str
    type_description_hash: str = ""


class _Counted(_Part):
    topic_metadata: _Topic
    message_count: int


class _Information(_Part):
    relative_file_paths: list[str]
    topics_with_message_count: list[_Counted] = []


class _Metadata(_Part):
    rosbag2_bagfile_information: _Information


def is_stored(path: Path) -> bool:
    """Whether the file's name is that of a bag storage file."""
    return path.name.removesuffix(_PACKED).endswith(STORED_AS)


def is_bag(path: Path) -> bool:
    """Whether a folder or file looks like a bag, complete or not."""
    if path.is_file():
        return is_stored(path)
    return path.is_dir() and ((path / METADATA).is_file() or any(is_stored(file) for file in path.iterdir()))


def is_packed(path: Path) -> bool:
    """Whether the whole file is compressed."""
    return path.suffix == _PACKED


def list_files(path: Path) -> Listing:
    """List the files of a bag's folder, or the single file `path`; raise BagError if there is none."""
    if not path.exists():
        raise BagError(f"{path}: there is no such folder or file; check the path")
    if path.is_file():
        if not is_stored(path):
            raise BagError(f"{path}: is not a bag: neither a folder nor a file that ends in {' or '.join(STORED_AS)}")
        return Listing(files=(path,), promised={}, digests={})
    files = sorted((file for file in path.iterdir() if file.is_file() and is_stored(file)), key=_number)
    stated, notes = _stated(path)
    if stated is None:
        if not files:
            fault = notes[0] if notes else f"has no {METADATA}"
            raise BagError(f"{path}: cannot be opened as a bag: it {fault}, and no file in it ends in .mcap or .db3")
        return Listing(files=tuple(files), promised={}, digests={}, notes=tuple(notes))
    names = [Path(name).name for name in stated.relative_file_paths]
    missing = [name for name in names if not (path / name).is_file()]
    further = [file for file in files if file.name not in names]
    if missing and not files:
        raise BagError(
            f"{path}: cannot be opened as a bag: {METADATA} lists {', '.join(missing)}, and no such file is there"
        )
    if missing:
        notes.append(f"{METADATA} is out of date: {', '.join(missing)} is not there")
    if further:
        notes.append(f"{METADATA} is out of date: it does not list {', '.join(file.name for file in further)}")
    promised: dict[str, int] = {}
    for counted in stated.topics_with_message_count:
        name = counted.topic_metadata.name
        promised[name] = promised.get(name, 0) + counted.message_count
    digests = {t.topic_metadata.name: t.topic_metadata.type_description_hash for t in stated.topics_with_message_count}
    present = tuple(path / name for name in names if name not in missing)
    return Listing(files=(*present, *further), promised=promised, digests=digests, notes=tuple(notes))


def _stated(path: Path) -> tuple[_Information | None, list[str]]:
    file = path / METADATA
    if not file.is_file():
        return None, [f"has no {METADATA}"]
    try:
        return load_config(_Metadata, file).rosbag2_bagfile_information, []
    except ConfigError as error:
        return None, [f"has a {METADATA} that cannot be read ({str(error).splitlines()[0].removeprefix(f'{path}/')})"]


def _number(path: Path) -> tuple[object, ...]:
    """Sort session_2 before session_10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name))
