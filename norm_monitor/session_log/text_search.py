"""Find names and runs of words in text, and in the files of a study."""

import codecs
import html
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO

from norm_core.files.data_files import shipped_text
from norm_core.records.record import record
from norm_core.runtime.wording import count_of

# Frequent English words and particles of names, which people say all the time. As a part of a name, such a word counts
# only if it is capitalized within a sentence, after a title, or as an address: "ask Rose", "Mr. Brown", "Will, look".
# Rare words that are names too (smith, cooper, lily) count everywhere: to remove such a word loses little.
COMMON_WORDS = frozenset(shipped_text("norm_monitor.session_log", "common_words.txt").split())
# Parts of names that are not names.
_TITLES = {"dr", "herr", "ii", "iii", "jr", "madam", "miss", "mme", "mr", "mrs", "ms", "prof", "professor", "sir", "sr"}
_NAME_PART = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Maximum length of a part of a name that counts only with a capital: li and ali are words somewhere.
_MAX_CASED_PART = 3
# Maximum length of a name that counts only as it is written: An and In are names too.
_MAX_CASED_NAME = 3
# What stands before a word within a sentence.
_WITHIN_SENTENCE = (
    "(?:" + "|".join(rf"(?<={before} )" for before in ("[\\w,;:]", r"Mr\.", r"Ms\.", r"Dr\.", r"Mrs\.")) + ")"
)

_WORD = re.compile(r"\w+")
# The length from which a run can be recognized in another text: in words, or in characters of scripts without spaces.
_RUN_WORDS = 4
_RUN_CHARACTERS = 6

# How a zip begins; spreadsheets and text documents are zips too.
_ZIP_MAGIC = b"PK\3\4"
# How archives and bags begin, whose text cannot be read.
_ARCHIVE_MAGICS = (
    _ZIP_MAGIC, b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!", b"\x89MCAP", b"SQLite"
)  # fmt: skip
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_OFFSET = 257
# Files are read in blocks.
BLOCK_BYTES = 4 << 20
# Blocks overlap by so much, so that a sentence across their border is found.
OVERLAP_BYTES = 4 << 10
# The suffixes of pictures, sound and video, in which no text is searched.
_MEDIA_SUFFIXES = {
    ".aac", ".avi", ".bmp", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mkv", ".mov", ".mp3", ".mp4", ".mpg", ".ogg",
    ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip
# An escape of JSON, and a tag of HTML or XML.
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([nrtbf])|(.))")
_TAG = re.compile("<[^<>]*>")


def split_names(names: Iterable[str]) -> Iterator[str]:
    """Yield the parts of names that count as names too: not titles, initials or numbers."""
    whole_names = {name.strip().casefold() for name in names}
    yielded: set[str] = set()
    for name in names:
        for part in _NAME_PART.findall(name):
            key = part.casefold()
            if len(part) > 1 and not part.isdigit() and key not in _TITLES | whole_names | yielded:
                yielded.add(key)
                yield part


def make_name_pattern(name: str) -> str:
    """Return a pattern for a whole name, as whole words where its script has words."""
    has_words = name.isascii() or any(c.islower() or c.isupper() for c in name)
    return rf"(?<!\w){re.escape(name)}(?!\w)" if has_words else re.escape(name)


def make_part_pattern(part: str) -> str:
    """Return a pattern for one part of a name, which includes the case in which the part counts."""
    capitalized = part[:1].upper() + part[1:]
    if part.casefold() in COMMON_WORDS:
        word = rf"(?-i:{re.escape(capitalized)})"
        return rf"(?:{_WITHIN_SENTENCE}{word}(?!\w)|(?<!\w){word}(?=[,!?]))"
    if len(part) <= _MAX_CASED_PART and part.upper() != part.lower():
        return rf"(?<!\w)(?-i:{re.escape(capitalized)}|{re.escape(part.upper())})(?!\w)"
    return rf"(?i:{make_name_pattern(part)})"


def normalize_words(text: str) -> str:
    """Return only the words of a text, in lower case and each between spaces."""
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


Run = tuple[str, ...]
# A word or character of a text, with its start and end there.
Unit = tuple[str, int, int]


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
        self._runs.update(run for run, _ in _find_runs(text) if leave_out is None or run not in leave_out)

    def have_match_in(self, words: list[str]) -> bool:
        """Whether any run occurs among the normalized words of a text. It is fast, for whole files."""
        if not self._runs:
            return False
        long_words = (word for word in words if len(word) >= _RUN_CHARACTERS and not word.isascii())
        runs = [zip(*(words[offset:] for offset in range(_RUN_WORDS)), strict=False)]
        runs += [zip(*(word[offset:] for offset in range(_RUN_CHARACTERS)), strict=False) for word in long_words]
        return not all(map(self._runs.isdisjoint, runs))

    def replace_in(self, text: str, stand_in: str) -> str:
        """Replace each longest stretch of the text that consists of such runs."""
        stretches: list[tuple[int, int]] = []
        for run, (start, end) in _find_runs(text) if self._runs else ():
            if run not in self._runs:
                continue
            if stretches and start <= stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], end)
            else:
                stretches.append((start, end))
        for start, end in reversed(stretches):
            text = f"{text[:start]}{stand_in}{text[end:]}"
        return text


def _find_runs(text: str) -> Iterator[tuple[Run, tuple[int, int]]]:
    """Yield each run of a text with its start and end: words, or characters of a long word without spaces."""
    words: list[Unit] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if len(word) < _RUN_CHARACTERS or word.isascii() or word[0].islower() or word[0].isupper():
            words.append((word.casefold(), match.start(), match.end()))
            continue
        yield from _slide_window(words, _RUN_WORDS)
        words = []
        characters = [(letter, start, start + 1) for start, letter in enumerate(word, match.start())]
        yield from _slide_window(characters, _RUN_CHARACTERS)
    yield from _slide_window(words, _RUN_WORDS)


def _slide_window(units: list[Unit], size: int) -> Iterator[tuple[Run, tuple[int, int]]]:
    """Yield each run of a number of units, with its start and end in the text."""
    for index in range(len(units) - size + 1):
        window = units[index : index + size]
        yield tuple(text for text, _, _ in window), (window[0][1], window[-1][2])


class TextSearch:
    """A search for names and for runs of words that people said, prepared for many texts."""

    def __init__(self, names: Collection[str], runs: WordRuns) -> None:
        groups = (
            ("a name", [make_name_pattern(name) for name in names if len(name) > _MAX_CASED_NAME], re.IGNORECASE),
            ("a name", [make_name_pattern(name) for name in names if len(name) <= _MAX_CASED_NAME], re.NOFLAG),
            ("a part of a name", [make_part_pattern(part) for part in split_names(names)], re.NOFLAG),
        )
        self._patterns = [(what, re.compile("|".join(patterns), flags)) for what, patterns, flags in groups if patterns]
        self._runs = runs
        self.scope = f"{count_of(len(names), 'name')} and {count_of(len(runs), 'run')} of words"

    def find(self, text: str) -> Iterator[str]:
        """Yield a description of each kind of hit in a text."""
        for what, pattern in self._patterns:
            if pattern.search(text):
                yield what
        if self._runs.have_match_in(normalize_words(text).split()):
            yield "words that a participant said"


@record
class FolderSearch:
    """The number of searched files, and what is wrong with each that has a hit or cannot be searched."""

    searched: int
    hits: dict[str, str]


def search_folder(folder: Path, search: TextSearch, leave_out: frozenset[Path] = frozenset()) -> FolderSearch:
    """Search the name and the text of every file in a folder, but for these files. Links are not followed."""
    searched = 0
    problems: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.resolve() in leave_out:
            continue
        name = path.relative_to(folder).as_posix()
        searched += 1
        hits = dict.fromkeys(search.find(re.sub("[_/.]", " ", name)))
        try:
            for text in _read_texts(path) if path.suffix.lower() not in _MEDIA_SUFFIXES else ():
                hits |= dict.fromkeys(search.find(text))
        except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            problems[name] = f"cannot be searched: {error}"
        if hits:
            problems[name] = f"has {' and '.join(hits)}"
    return FolderSearch(searched=searched, hits=problems)


def _read_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file, or of the files in a zip. Raises ValueError for an archive of another kind."""
    with path.open("rb") as file:
        if file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC:
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    yield name
                    with archive.open(name) as member:
                        yield from _read_blocks(member)
        else:
            file.seek(0)
            yield from _read_blocks(file)


def _read_blocks(file: IO[bytes]) -> Iterator[str]:
    """Yield a file's text in blocks: UTF-16 if it has a byte order mark, or else UTF-8.

    Raises ValueError for an archive or a bag.
    """
    overlap = b""
    encoding = "utf-8"
    while block := file.read(BLOCK_BYTES):
        if not overlap:
            if block.startswith(_ARCHIVE_MAGICS) or block[_TAR_MAGIC_OFFSET:].startswith(_TAR_MAGIC):
                raise ValueError("it is a bag or an archive")
            if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                encoding = "utf-16-le" if block.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        text = (overlap + block).decode(encoding, "replace")
        yield text
        if "\\" in text or "<" in text or "&" in text:  # JSON, HTML or XML: without escapes and tags
            unescaped = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else " " if m[2] else m[3], text)
            yield html.unescape(_TAG.sub(" ", unescaped))
        overlap = block[-OVERLAP_BYTES:]
