"""Find names and runs of words in text, and in the files of a study."""

import codecs
import html
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import IO

import zstandard
from mcap.exceptions import McapError
from mcap.records import Attachment, Channel, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import MCAP0_MAGIC

from norm_core.files.data_files import shipped_text
from norm_core.records.record import record
from norm_core.runtime.wording import count_of

# Parts of names that people say all the time: frequent English words, and particles of names. Such a part counts as a
# name only where it is capitalised within a sentence, after a title, or as an address: "ask Rose", "Mr. Brown",
# "Will, look". A rare word (a smith, a cooper, a lily) is no loss where it goes, so it counts everywhere.
COMMON_WORDS = frozenset(shipped_text("norm_monitor.session_log", "common_words.txt").split())
_TITLES = {"dr", "herr", "ii", "iii", "jr", "madam", "miss", "mme", "mr", "mrs", "ms", "prof", "professor", "sir", "sr"}
_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Up to so many letters, a part counts only with a capital: li and ali are words somewhere.
_SHORT = 3
_AMID_SENTENCE = (
    "(?:" + "|".join(rf"(?<={before} )" for before in ("[\\w,;:]", r"Mr\.", r"Ms\.", r"Dr\.", r"Mrs\.")) + ")"
)


def name_parts(names: Iterable[str]) -> Iterator[str]:
    """Yield the parts of names that count as names too: not titles, initials or numbers."""
    whole = {name.strip().casefold() for name in names}
    seen: set[str] = set()
    for name in names:
        for part in _PART.findall(name):
            key = part.casefold()
            if len(part) > 1 and not part.isdigit() and key not in _TITLES | whole | seen:
                seen.add(key)
                yield part


def is_common(part: str) -> bool:
    """Whether a part of a name is an ordinary word as well."""
    return part.casefold() in COMMON_WORDS


def name_pattern(name: str) -> str:
    """Return a pattern for a whole name, as whole words where its script has words."""
    spaced = name.isascii() or any(c.islower() or c.isupper() for c in name)
    return rf"(?<!\w){re.escape(name)}(?!\w)" if spaced else re.escape(name)


def part_pattern(part: str) -> str:
    """Return a pattern for one part of a name, which itself says in which case it counts."""
    capital = part[:1].upper() + part[1:]
    if is_common(part):
        word = rf"(?-i:{re.escape(capital)})"
        return rf"(?:{_AMID_SENTENCE}{word}(?!\w)|(?<!\w){word}(?=[,!?]))"
    if len(part) <= _SHORT and part.upper() != part.lower():
        return rf"(?<!\w)(?-i:{re.escape(capital)}|{re.escape(part.upper())})(?!\w)"
    return rf"(?i:{name_pattern(part)})"


# The fewest words, or characters in scripts without spaces, that are recognized.
_TELLING_WORDS, _TELLING_CHARACTERS = 4, 6
# In a row, each from the next word on. Of twenty sessions of a minute, four in ten share a run, one in fifty three.
_TELLING_RUNS = 3
_WORD = re.compile(r"\w+")


def plain_words(text: str) -> str:
    """Return only the words of a text, each between spaces."""
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


def telling_sentences(text: str) -> Iterator[str]:
    """Yield sentences long enough to recognize in another text after plain_words."""
    for sentence in re.split(r"[.!?。！？]+", text):
        plain = plain_words(sentence)
        words = plain.split()
        if len(words) >= _TELLING_WORDS:
            yield plain
        elif len(words) == 1 and not plain.isascii() and len(words[0]) >= _TELLING_CHARACTERS:
            yield words[0]


Run = tuple[str, ...]


class WordRuns:
    """Runs of words that must not appear in other texts."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._runs: set[Run] = {*runs}

    def __len__(self) -> int:
        """Count the runs."""
        return len(self._runs)

    def __contains__(self, run: Run) -> bool:
        """Whether this is one of the runs."""
        return run in self._runs

    def __sub__(self, other: "WordRuns") -> "WordRuns":
        """Return the runs that the other lacks."""
        return WordRuns(self._runs - other._runs)

    def add(self, text: str, leave_out: "WordRuns | None" = None) -> None:
        """Add every run of a text's words that is long enough to recognize, but for those of `leave_out`."""
        self._runs.update(run for run, _ in _runs(text) if leave_out is None or run not in leave_out)

    def occur_in(self, words: list[str]) -> bool:
        """Whether any run stands in a text, of which these are the plain words. Fast, for whole files."""
        if not self._runs:
            return False
        unspaced = (word for word in words if len(word) >= _TELLING_CHARACTERS and not word.isascii())
        runs = [zip(*(words[n:] for n in range(_TELLING_WORDS)), strict=False)]
        runs += [zip(*(word[n:] for n in range(_TELLING_CHARACTERS)), strict=False) for word in unspaced]
        return not all(map(self._runs.isdisjoint, runs))

    def occur_at_length_in(self, text: str) -> bool:
        """Whether several runs stand in a text one after another, which happens hardly ever by chance."""
        return any(count >= _TELLING_RUNS for *_, count in self._stretches(text))

    def replaced_in(self, text: str, stand_in: str) -> str:
        """Replace each longest stretch of the text that consists of such runs."""
        for start, end, _ in reversed(self._stretches(text)):
            text = f"{text[:start]}{stand_in}{text[end:]}"
        return text

    def _stretches(self, text: str) -> list[tuple[int, int, int]]:
        """List where each longest stretch of such runs starts and ends, and the number of its runs."""
        stretches: list[tuple[int, int, int]] = []
        for run, (start, end) in _runs(text) if self._runs else ():
            if run not in self._runs:
                continue
            if stretches and start <= stretches[-1][1]:
                before, _, count = stretches[-1]
                stretches[-1] = (before, end, count + 1)
            else:
                stretches.append((start, end, 1))
        return stretches


def _runs(text: str) -> Iterator[tuple[Run, tuple[int, int]]]:
    """Yield each run of a text in order, with its place: some words, or some characters of one long word."""
    units: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if len(word) < _TELLING_CHARACTERS or word.isascii() or word[0].islower() or word[0].isupper():
            units.append((word.casefold(), match.start(), match.end()))
            continue
        yield from _windows(units, _TELLING_WORDS)
        units = []
        yield from _windows(
            [(letter, match.start() + index, match.start() + index + 1) for index, letter in enumerate(word)],
            _TELLING_CHARACTERS,
        )
    yield from _windows(units, _TELLING_WORDS)


def _windows(units: list[tuple[str, int, int]], size: int) -> Iterator[tuple[Run, tuple[int, int]]]:
    for index in range(len(units) - size + 1):
        window = units[index : index + size]
        yield tuple(word for word, _, _ in window), (window[0][1], window[-1][2])


# Up to so many letters, a name counts only as it is written: An and In are names too.
_SHORT_NAME = 3


@record
class Forbidden:
    """What may stand in no file: names and pseudonyms with their description, and what people said.

    In a recording, `shared` runs, which others said too, count only in a row: it cannot be edited, only erased.
    """

    names: Mapping[str, str]
    pseudonyms: Mapping[str, str] = field(default_factory=dict)
    sentences: frozenset[str] = frozenset()
    runs: WordRuns = field(default_factory=WordRuns)
    shared: WordRuns = field(default_factory=WordRuns)


class TextSearch:
    """What is looked for, prepared for many texts."""

    def __init__(self, forbidden: Forbidden) -> None:
        short = {name: what for name, what in forbidden.names.items() if len(name) <= _SHORT_NAME}
        others = {name: what for name, what in forbidden.names.items() if name not in short}
        exact = short | dict(forbidden.pseudonyms)
        self._parts = tuple(name_parts(forbidden.names))
        self._runs, self._own_runs = forbidden.runs, forbidden.runs - forbidden.shared
        self._counts = (len(forbidden.names), len(forbidden.pseudonyms), len(forbidden.sentences))
        self._matchers = [*_matchers(others, re.IGNORECASE), *_matchers(exact)]
        if self._parts:
            self._matchers.append(("a part of a name", re.compile("|".join(map(part_pattern, self._parts)))))
        self._sentences: dict[str, list[str]] = {}  # by first word
        self._unspaced = [sentence for sentence in forbidden.sentences if " " not in sentence]
        for sentence in forbidden.sentences - {*self._unspaced}:
            self._sentences.setdefault(sentence.split()[0], []).append(sentence)

    @property
    def scope(self) -> str:
        """Say how much is looked for, without saying what."""
        names, pseudonyms, sentences = self._counts
        common = sum(map(is_common, self._parts))
        parts = f" and {count_of(len(self._parts), 'part')} of them" if self._parts else ""
        parts += f" ({count_of(common, 'ordinary word')}, sought with a capital within a sentence)" if common else ""
        withheld = f"{count_of(len(self._runs), 'run')} of words" if self._runs else count_of(sentences, "sentence")
        sought = [count_of(names, "name") + parts, count_of(pseudonyms, "pseudonym"), withheld]
        *before, last = sought if pseudonyms else (sought[0], sought[2])
        return f"{', '.join(before)} and {last}"

    def hits(self, text: str, *, in_recording: bool = False) -> Iterator[str]:
        """Yield the description of what stands in a text."""
        for what, pattern in self._matchers:
            if pattern.search(text):
                yield what
        plain = plain_words(text)
        words = plain.split()
        candidates = [sentence for word in {*words} for sentence in self._sentences.get(word, ())]
        is_said = any(sentence in plain for sentence in (*candidates, *self._unspaced))
        if not is_said and self._runs.occur_in(words):
            is_said = not in_recording or self._own_runs.occur_in(words) or self._runs.occur_at_length_in(text)
        if is_said:
            yield "words that a participant said"


def _matchers(names: Mapping[str, str], flags: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    by_what: dict[str, list[str]] = {}
    for name, what in names.items():
        by_what.setdefault(what, []).append(name_pattern(name))
    for what, patterns in by_what.items():
        yield what, re.compile("|".join(patterns), flags)


_SQLITE, _ZIP = b"SQLite format 3\0", b"PK\3\4"
# gzip, bzip2, xz and Zstandard, and the mark within the head of a tar file.
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_TAR_AT, _TAR = 257, b"ustar"
# Text is read in blocks that overlap, so that a sentence across their border is found.
BLOCK_BYTES, OVERLAP_BYTES = 4 << 20, 4 << 10
# What readers of foreign files raise.
_UNREADABLE = (
    OSError, EOFError, ValueError, LookupError, ArithmeticError, RuntimeError, struct.error, zlib.error,
    zstandard.ZstdError, zipfile.BadZipFile, sqlite3.Error, McapError,
)  # fmt: skip
# Pictures and sound, which no search of text reaches.
NO_TEXT = {
    ".aac", ".avi", ".bmp", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".mpg", ".ogg",
    ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip
_RECORDINGS = {".bag", ".db3", ".mcap"}
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
    holding: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.resolve() in leave_out:
            continue
        name = path.relative_to(folder).as_posix()
        searched += 1
        hits = dict.fromkeys(search.hits(re.sub("[_/.]", " ", name)))
        try:
            for text in _texts(path) if path.suffix.lower() not in NO_TEXT else ():
                hits |= dict.fromkeys(search.hits(text, in_recording=path.suffix in _RECORDINGS))
        except _UNREADABLE as error:
            unreadable[name] = f"cannot be searched: {str(error) or type(error).__name__}"
        if hits:
            holding[name] = f"has {' and '.join(hits)}"
    return FolderSearch(searched=searched, found=holding, unreadable=unreadable)


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file. Raises one of _UNREADABLE."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            yield from _texts_in_database(path)
            return
        file.seek(0)
        if file.read(len(_ZIP)) != _ZIP:
            file.seek(0)
            yield from _texts_in(file)
            return
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                yield info.filename
                with archive.open(info) as member:
                    yield from _texts_in(member)


def _texts_in(file: IO[bytes]) -> Iterator[str]:
    head = file.read(_TAR_AT + len(_TAR))
    file.seek(0)
    if head.startswith((*_PACKED, _ZIP)) or head[_TAR_AT:] == _TAR:
        raise ValueError("it is packed; unpack it, or delete it")
    yield from _texts_in_bag(file) if head.startswith(MCAP0_MAGIC) else _blocks(file)


def _texts_in_bag(file: IO[bytes]) -> Iterator[str]:
    types: dict[int, str] = {}
    silent: set[int] = set()
    for mcap_record in StreamReader(file).records:
        match mcap_record:
            case Schema():
                types[mcap_record.id] = mcap_record.name
            case Channel():
                if _NO_TEXT_TYPE.search(types.get(mcap_record.schema_id, "")):
                    silent.add(mcap_record.id)
            case Message() if mcap_record.channel_id not in silent:
                yield from _readings(mcap_record.data.decode("utf-8", "replace"))
            case Attachment():
                yield mcap_record.name
                yield from _readings(mcap_record.data.decode("utf-8", "replace"))
            case Metadata():
                yield " ".join([mcap_record.name, *(f"{key}: {value}" for key, value in mcap_record.metadata.items())])


def _texts_in_database(path: Path) -> Iterator[str]:
    """Yield every value of a database, such as a bag's, with what waits in its write-ahead log."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute('SELECT * FROM "{}"'.format(table.replace('"', '""'))):
                for value in row:
                    if isinstance(value, bytes) and value.startswith(_PACKED):
                        raise ValueError("its messages are packed; convert it with ros2 bag convert, or delete it")
                    if isinstance(value, str | bytes):
                        yield from _readings(value if isinstance(value, str) else value.decode("utf-8", "replace"))


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
