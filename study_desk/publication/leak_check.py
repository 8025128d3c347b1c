"""Look through the files of a dataset for names, spoken words, media and absolute times."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from norm_core.records.record import record
from study_desk.privacy.text_search import TextSearch

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
_HOME = re.compile(r"(?:/home|/Users|[A-Z]:\\Users)[/\\]\w+")
_MEDIA = {
    ".aac", ".avi", ".bag", ".bmp", ".db3", ".flac", ".gif", ".jpeg", ".jpg", ".m4a", ".mcap", ".mkv", ".mov", ".mp3",
    ".mp4", ".mpg", ".ogg", ".opus", ".png", ".tif", ".tiff", ".wav", ".webm", ".webp", ".wma", ".wmv",
}  # fmt: skip


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
    files: Iterable[tuple[str, bytes]], search: TextSearch, may_be_media: Callable[[str], bool]
) -> tuple[Leak, ...]:
    """Check every file by name and line. `may_be_media` says where clips with consent may lie."""
    return tuple(leak for name, data in files for leak in _leaks(name, data, search, may_be_media))


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder. A link is a file without content."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() or path.is_symlink():
            yield path.relative_to(folder).as_posix(), b"" if path.is_symlink() else path.read_bytes()


def _leaks(name: str, data: bytes, search: TextSearch, may_be_media: Callable[[str], bool]) -> Iterator[Leak]:
    for problem in _problems(name.replace("_", " ").replace("/", " "), search):
        yield Leak(file=name, line=None, problem=f"its name has {problem}")
    text = _text(data)
    if text is None or Path(name).suffix.lower() in _MEDIA:
        if not may_be_media(name):
            yield Leak(file=name, line=None, problem="is no text and may show a face or carry a voice")
        return
    for number, line in enumerate(text.splitlines(), 1):
        for problem in _problems(line, search):
            yield Leak(file=name, line=number, problem=f"has {problem}")


def _problems(line: str, search: TextSearch) -> Iterator[str]:
    """Yield what must not stand in a line."""
    yield from search.hits(line)
    for what, pattern in _TIMES:
        if found := pattern.search(line):
            yield f"{what}: {found[0]}"
    if found := _HOME.search(line):
        yield f"the path of a user: {found[0]}"


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
