"""Look through the files of a dataset for names, spoken words, media and absolute times."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from norm_core.records.record import record
from study_desk.privacy.word_runs import plain_words

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DAY, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:19|20)\d\d"
_TIMES = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a date", rf"(?<![\w.-]){_YEAR}-(?:0[1-9]|1[0-2])(?:-{_DAY})?(?!\d)"),
        ("a date", rf"(?<!\d){_DAY}[./-]{_DAY}[./-]{_YEAR}(?!\d)"),
        ("a date", rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?\b|\b{_DAY}\.?\s+{_MONTH}(?!\w)|\b{_MONTH}\s+{_YEAR}\b"),
        ("a time of day", r"(?<![\d:])(?:[01]\d|2[0-3]):[0-5]\d(?!\d)"),
        ("a time stamp", r"(?<![\w.])1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)"),
        ("a time stamp", r"(?<!\d)(?:19|20)\d{6}[T_]\d{4,6}(?!\d)"),
    )
)
# Up to so many letters, a name counts only as it is written: An and In are names too.
_SHORT_NAME = 3
_HOME = re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\]\w+")
_MEDIA = {
    ".aac", ".avi", ".bag", ".bmp", ".db3", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mcap", ".mkv", ".mov", ".mp3",
    ".mp4", ".mpg", ".ogg", ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip


@record
class Forbidden:
    """What may stand in no file: names and pseudonyms with their description, and sentences that people said."""

    names: Mapping[str, str]
    pseudonyms: Mapping[str, str]
    sentences: frozenset[str]


@record
class Leak:
    """One hit of the check. `line` is None where the file as a whole or its name is the problem."""

    file: str
    line: int | None
    problem: str

    def __str__(self) -> str:
        """Name the file, the line and the problem."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.problem}"


def find_leaks(
    files: Iterable[tuple[str, bytes]], forbidden: Forbidden, may_be_media: Callable[[str], bool]
) -> tuple[Leak, ...]:
    """Check every file by name and line. `may_be_media` says where clips with consent may lie."""
    search = _Search(forbidden)
    return tuple(leak for name, data in files for leak in _leaks(name, data, search, may_be_media))


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder. A link is a file without content."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() or path.is_symlink():
            yield path.relative_to(folder).as_posix(), b"" if path.is_symlink() else path.read_bytes()


def _leaks(name: str, data: bytes, search: "_Search", may_be_media: Callable[[str], bool]) -> Iterator[Leak]:
    for problem in search.problems(name.replace("_", " ").replace("/", " ")):
        yield Leak(file=name, line=None, problem=f"its name has {problem}")
    text = _text(data)
    if text is None or Path(name).suffix.lower() in _MEDIA:
        if not may_be_media(name):
            yield Leak(file=name, line=None, problem="is no text and may show a face or carry a voice")
        return
    for number, line in enumerate(text.splitlines(), 1):
        for problem in search.problems(line):
            yield Leak(file=name, line=number, problem=f"has {problem}")


class _Search:
    """What is looked for, prepared for many lines."""

    def __init__(self, forbidden: Forbidden) -> None:
        short = {name: what for name, what in forbidden.names.items() if len(name) <= _SHORT_NAME}
        others = {name: what for name, what in forbidden.names.items() if name not in short}
        exact = short | dict(forbidden.pseudonyms)
        self._matchers = [*_matchers(others, re.IGNORECASE), *_matchers(exact)]
        self._sentences: dict[str, list[str]] = {}  # by first word
        self._unspaced = [sentence for sentence in forbidden.sentences if " " not in sentence]
        for sentence in forbidden.sentences - {*self._unspaced}:
            self._sentences.setdefault(sentence.split()[0], []).append(sentence)

    def problems(self, line: str) -> Iterator[str]:
        """Yield what must not stand in a line."""
        for what, pattern in self._matchers:
            if pattern.search(line):
                yield what
        plain = plain_words(line)
        candidates = [sentence for word in {*plain.split()} for sentence in self._sentences.get(word, ())]
        if any(sentence in plain for sentence in (*candidates, *self._unspaced)):
            yield "words that a participant said"
        for what, pattern in _TIMES:
            if found := pattern.search(line):
                yield f"{what}: {found[0]}"
        if found := _HOME.search(line):
            yield f"the path of a user: {found[0]}"


def _matchers(names: Mapping[str, str], flags: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Make one pattern per description, with the names as whole words where their script has words."""
    by_what: dict[str, list[str]] = {}
    for name, what in names.items():
        spaced = name.isascii() or any(c.islower() or c.isupper() for c in name)
        by_what.setdefault(what, []).append(rf"(?<!\w){re.escape(name)}(?!\w)" if spaced else re.escape(name))
    for what, patterns in by_what.items():
        yield what, re.compile("|".join(patterns), flags)


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
