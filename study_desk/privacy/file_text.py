"""Read the text in the files of a study: pages, tables and logs, bags, and what is packed in archives."""

import bz2
import codecs
import gzip
import html
import io
import lzma
import re
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import zstandard
from mcap.exceptions import McapError
from mcap.records import Attachment, Channel, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import MCAP0_MAGIC

from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from study_desk.privacy.text_search import TextSearch

_SQLITE = b"SQLite format 3\0"
_PACKED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
}
_TAR_AT, _TAR = 257, b"ustar"
_HEAD_BYTES = _TAR_AT + len(_TAR)
# Text is read in blocks that overlap, so that a sentence across their border is found.
BLOCK_BYTES, OVERLAP_BYTES = 4 << 20, 4 << 10
_MAX_PACKING = 4  # archives within archives
_MAX_BYTES = 16 << 30  # of one file, unpacked
# What readers of foreign files raise.
_UNREADABLE = (
    OSError, EOFError, ValueError, LookupError, ArithmeticError, RuntimeError, struct.error, zlib.error, lzma.LZMAError,
    zstandard.ZstdError, zipfile.BadZipFile, tarfile.TarError, sqlite3.Error, McapError,
)  # fmt: skip
# Pictures and sound, which no search of text reaches.
NO_TEXT = {
    ".aac", ".avi", ".bmp", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".mpg", ".ogg",
    ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip
_NO_TEXT_TYPE = re.compile("Image|Audio|PointCloud|LaserScan|/Frame$")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|(.))")
_TAG = re.compile("<[^<>]*>")


@record
class FolderSearch:
    """The files that were searched, those in which something stands, and those that cannot be read, with the reason."""

    searched: int
    found: dict[str, str]
    unreadable: dict[str, str]


def search_folder(folder: Path, search: TextSearch, leave_out: frozenset[Path] = frozenset()) -> FolderSearch:
    """Search the name and the text of every file in a folder, but for these files. Links are not followed."""
    searched = 0
    found: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.resolve() in leave_out:
            continue
        name = path.relative_to(folder).as_posix()
        searched += 1
        hits = dict.fromkeys(search.hits(re.sub("[_/.]", " ", name)))
        try:
            for text in _texts(path) if path.suffix.lower() not in NO_TEXT else ():
                hits |= dict.fromkeys(search.hits(text))
        except _UNREADABLE as error:
            unreadable[name] = f"cannot be searched: {str(error) or type(error).__name__}"
        if hits:
            found[name] = f"has {' and '.join(hits)}"
    return FolderSearch(searched=searched, found=found, unreadable=unreadable)


def _texts(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            yield from _texts_in_database(path)
            return
        file.seek(0)
        unpacked = 0
        for text in _texts_in(file, _MAX_PACKING):
            yield text
            unpacked += len(text)
            if unpacked > _MAX_BYTES:
                raise ValueError(f"it holds more than {count_of(_MAX_BYTES >> 30, 'gibibyte')} of text")


def _texts_in(raw: IO[bytes], depth: int) -> Iterator[str]:
    """Yield the texts of a file. Raises one of _UNREADABLE."""
    file = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    is_zip, is_tar = head.startswith(b"PK\3\4"), head[_TAR_AT:] == _TAR
    if (unpack or is_zip or is_tar) and not depth:
        raise ValueError(f"it is packed more than {_MAX_PACKING} times")
    if head.startswith(MCAP0_MAGIC):
        yield from _texts_in_bag(file, depth)
    elif unpack:
        with unpack(file) as unpacked:
            yield from _texts_in(unpacked, depth - 1)
    elif is_zip:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                yield info.filename
                with archive.open(info) as member:
                    yield from _texts_in(member, depth - 1)
    elif is_tar:
        with tarfile.open(fileobj=file, mode="r|") as archive_of_tape:
            for entry in archive_of_tape:
                yield entry.name
                if tape := archive_of_tape.extractfile(entry):
                    yield from _texts_in(tape, depth - 1)
    else:
        yield from _blocks(file)


def _texts_in_bag(file: IO[bytes], depth: int) -> Iterator[str]:
    types: dict[int, str] = {}
    silent: set[int] = set()
    for each in StreamReader(file).records:
        match each:
            case Schema():
                types[each.id] = each.name
            case Channel():
                if _NO_TEXT_TYPE.search(types.get(each.schema_id, "")):
                    silent.add(each.id)
            case Message() if each.channel_id not in silent:
                yield from _texts_in_value(each.data, depth)
            case Attachment():
                yield each.name
                yield from _texts_in_value(each.data, depth)
            case Metadata():
                yield " ".join([each.name, *(f"{key}: {value}" for key, value in each.metadata.items())])


def _texts_in_database(path: Path) -> Iterator[str]:
    """Yield every value of a database, such as a bag's, with what waits in its write-ahead log."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute('SELECT * FROM "{}"'.format(table.replace('"', '""'))):
                for value in row:
                    if isinstance(value, str | bytes):
                        yield from _texts_in_value(value.encode() if isinstance(value, str) else value, _MAX_PACKING)


def _texts_in_value(data: bytes, depth: int) -> Iterator[str]:
    if data.startswith(tuple(_PACKED)):
        yield from _texts_in(io.BytesIO(data), depth - 1)
    else:
        yield from _readings(data.decode("utf-8", "replace"))


def _blocks(file: IO[bytes]) -> Iterator[str]:
    """Yield a file's text in blocks. A byte order mark tells UTF-16; all else is read as UTF-8."""
    before = b""
    encoding = "utf-8"
    while block := file.read(BLOCK_BYTES):
        if not before and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16-le" if block.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        yield from _readings((before + block).decode(encoding, "replace"))
        before = block[-OVERLAP_BYTES:]


def _readings(text: str) -> Iterator[str]:
    """Yield a text as it stands, and without the escapes of JSON and the marks of HTML and XML."""
    yield text
    if "\\" in text or "<" in text or "&" in text:
        plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else " " if m[2] else m[3], text)
        yield html.unescape(_TAG.sub(" ", plain))
