"""Recognize words of one text in another: sentences as a whole, and runs of words within them."""

import re
from collections.abc import Iterator

# The fewest words, or characters in scripts without spaces, that are recognized.
_TELLING_WORDS, _TELLING_CHARACTERS = 4, 6
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


class WordRuns:
    """Runs of words that must not appear in other texts."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, ...]] = set()

    def add(self, text: str) -> None:
        """Add every run of a text's words that is long enough to recognize."""
        self._runs.update(run for run, _ in _runs(text))

    def replaced_in(self, text: str, stand_in: str) -> str:
        """Replace each longest stretch of the text that consists of such runs."""
        if not self._runs:
            return text
        spans: list[tuple[int, int]] = []
        for run, (start, end) in _runs(text):
            if run not in self._runs:
                continue
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
        for start, end in reversed(spans):
            text = f"{text[:start]}{stand_in}{text[end:]}"
        return text


def _runs(text: str) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
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


def _windows(units: list[tuple[str, int, int]], size: int) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    for index in range(len(units) - size + 1):
        window = units[index : index + size]
        yield tuple(word for word, _, _ in window), (window[0][1], window[-1][2])
