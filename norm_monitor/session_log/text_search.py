"""Find names and runs of words in text, and in the files of a study."""

import codecs
import html
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO

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

# The fewest words, or characters in scripts without spaces, that are recognized.
_TELLING_WORDS, _TELLING_CHARACTERS = 4, 6
_WORD = re.compile(r"\w+")
# Up to so many letters, a name counts only as it is written: An and In are names too.
_SHORT_NAME = 3
_ZIP = b"PK\3\4"  # also of spreadsheets and text documents
# Other archives, and bags.
_PACKED = (_ZIP, b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!", b"\x89MCAP", b"SQLite")
_TAR, _TAR_AT = b"ustar", 257
# Text is read in blocks that overlap, so that a sentence across their border is found.
BLOCK_BYTES, OVERLAP_BYTES = 4 << 20, 4 << 10
# Pictures and sound, which no search of text reaches.
NO_TEXT = {
    ".aac", ".avi", ".bmp", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".mpg", ".ogg",
    ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|(.))")
_TAG = re.compile("<[^<>]*>")


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


def name_pattern(name: str) -> str:
    """Return a pattern for a whole name, as whole words where its script has words."""
    spaced = name.isascii() or any(c.islower() or c.isupper() for c in name)
    return rf"(?<!\w){re.escape(name)}(?!\w)" if spaced else re.escape(name)


def part_pattern(part: str) -> str:
    """Return a pattern for one part of a name, which itself says in which case it counts."""
    capital = part[:1].upper() + part[1:]
    if part.casefold() in COMMON_WORDS:
        word = rf"(?-i:{re.escape(capital)})"
        return rf"(?:{_AMID_SENTENCE}{word}(?!\w)|(?<!\w){word}(?=[,!?]))"
    if len(part) <= _SHORT and part.upper() != part.lower():
        return rf"(?<!\w)(?-i:{re.escape(capital)}|{re.escape(part.upper())})(?!\w)"
    return rf"(?i:{name_pattern(part)})"


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

    def add(self, text: str, leave_out: "WordRuns | None" = None) -> None:
        """Add every run of a text's words that is long enough to recognize, but for those of `leave_out`."""
        self._runs.update(run for run, _ in _runs(text) if leave_out is None or run not in leave_out)

    def occur_in(self, words: list[str]) -> bool:
        """Whether any run occurs among the plain words of a text. Fast, for whole files."""
        if not self._runs:
            return False
        unspaced = (word for word in words if len(word) >= _TELLING_CHARACTERS and not word.isascii())
        runs = [zip(*(words[n:] for n in range(_TELLING_WORDS)), strict=False)]
        runs += [zip(*(word[n:] for n in range(_TELLING_CHARACTERS)), strict=False) for word in unspaced]
        return not all(map(self._runs.isdisjoint, runs))

    def replaced_in(self, text: str, stand_in: str) -> str:
        """Replace each longest stretch of the text that consists of such runs."""
        stretches: list[tuple[int, int]] = []
        for run, (start, end) in _runs(text) if self._runs else ():
            if run not in self._runs:
                continue
            if stretches and start <= stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], end)
            else:
                stretches.append((start, end))
        for start, end in reversed(stretches):
            text = f"{text[:start]}{stand_in}{text[end:]}"
        return text


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


@record
class Forbidden:
    """What no file may hold: names and pseudonyms with their description, and what people said."""

    names: Mapping[str, str]
    pseudonyms: Mapping[str, str] = field(default_factory=dict)
    sentences: frozenset[str] = frozenset()
    runs: WordRuns = field(default_factory=WordRuns)


class TextSearch:
    """A search for what is forbidden, prepared for many texts."""

    def __init__(self, forbidden: Forbidden) -> None:
        short = {name: what for name, what in forbidden.names.items() if len(name) <= _SHORT_NAME}
        others = {name: what for name, what in forbidden.names.items() if name not in short}
        self._matchers = [*_matchers(others, re.IGNORECASE), *_matchers(short | dict(forbidden.pseudonyms))]
        if parts := [*name_parts(forbidden.names)]:
            self._matchers.append(("a part of a name", re.compile("|".join(map(part_pattern, parts)))))
        self._runs = forbidden.runs
        self.scope = f"{count_of(len(forbidden.names), 'name')} and {count_of(len(forbidden.runs), 'run')} of words"
        self._sentences: dict[str, list[str]] = {}  # by first word
        self._unspaced = [sentence for sentence in forbidden.sentences if " " not in sentence]
        for sentence in forbidden.sentences - {*self._unspaced}:
            self._sentences.setdefault(sentence.split()[0], []).append(sentence)

    def hits(self, text: str) -> Iterator[str]:
        """Yield a description of each forbidden thing in a text."""
        for what, pattern in self._matchers:
            if pattern.search(text):
                yield what
        plain = plain_words(text)
        words = plain.split()
        candidates = [sentence for word in {*words} for sentence in self._sentences.get(word, ())]
        if any(sentence in plain for sentence in (*candidates, *self._unspaced)) or self._runs.occur_in(words):
            yield "words that a participant said"


def _matchers(names: Mapping[str, str], flags: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    by_what: dict[str, list[str]] = {}
    for name, what in names.items():
        by_what.setdefault(what, []).append(name_pattern(name))
    for what, patterns in by_what.items():
        yield what, re.compile("|".join(patterns), flags)


@record
class FolderSearch:
    """The number of searched files, and what is wrong with each that has a hit or cannot be searched."""

    searched: int
    hits: dict[str, str]


def search_folder(folder: Path, search: TextSearch, leave_out: frozenset[Path] = frozenset()) -> FolderSearch:
    """Search the name and the text of every file in a folder, but for these files. Links are not followed."""
    searched = 0
    hits_by_file: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.resolve() in leave_out:
            continue
        name = path.relative_to(folder).as_posix()
        searched += 1
        hits = dict.fromkeys(search.hits(re.sub("[_/.]", " ", name)))
        try:
            for text in _texts(path) if path.suffix.lower() not in NO_TEXT else ():
                hits |= dict.fromkeys(search.hits(text))
        except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            hits_by_file[name] = f"cannot be searched: {error}"
        if hits:
            hits_by_file[name] = f"has {' and '.join(hits)}"
    return FolderSearch(searched=searched, hits=hits_by_file)


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file, or of the files in a zip. Raises ValueError for an archive of another kind."""
    with path.open("rb") as file:
        if file.read(len(_ZIP)) == _ZIP:
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    yield name
                    with archive.open(name) as member:
                        yield from _blocks(member)
        else:
            file.seek(0)
            yield from _blocks(file)


def _blocks(file: IO[bytes]) -> Iterator[str]:
    """Yield a file's text in blocks. A byte order mark shows UTF-16; all else is read as UTF-8."""
    before = b""
    encoding = "utf-8"
    while block := file.read(BLOCK_BYTES):
        if not before:
            if block.startswith(_PACKED) or block[_TAR_AT:].startswith(_TAR):
                raise ValueError("it is a bag or an archive")
            if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                encoding = "utf-16-le" if block.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        text = (before + block).decode(encoding, "replace")
        yield text
        if "\\" in text or "<" in text or "&" in text:  # JSON, HTML or XML: without escapes and marks
            plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else " " if m[2] else m[3], text)
            yield html.unescape(_TAG.sub(" ", plain))
        before = block[-OVERLAP_BYTES:]
