"""Search text for names, pseudonyms and sentences that must not stand there."""

import re
from collections.abc import Iterator, Mapping

from norm_core.records.record import record
from norm_core.runtime.wording import count_of
from study_desk.privacy.names import is_common, name_parts, name_pattern, part_pattern
from study_desk.privacy.word_runs import plain_words

# Up to so many letters, a name counts only as it is written: An and In are names too.
_SHORT_NAME = 3


@record
class Forbidden:
    """What may stand in no file: names and pseudonyms with their description, and sentences that people said."""

    names: Mapping[str, str]
    pseudonyms: Mapping[str, str]
    sentences: frozenset[str]


class TextSearch:
    """What is looked for, prepared for many texts."""

    def __init__(self, forbidden: Forbidden) -> None:
        short = {name: what for name, what in forbidden.names.items() if len(name) <= _SHORT_NAME}
        others = {name: what for name, what in forbidden.names.items() if name not in short}
        exact = short | dict(forbidden.pseudonyms)
        self._parts = tuple(name_parts(forbidden.names))
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
        sought = [count_of(names, "name") + parts, count_of(pseudonyms, "pseudonym"), count_of(sentences, "sentence")]
        *before, last = sought if pseudonyms else (sought[0], sought[2])
        return f"{', '.join(before)} and {last}"

    def hits(self, text: str) -> Iterator[str]:
        """Yield the description of what stands in a text."""
        for what, pattern in self._matchers:
            if pattern.search(text):
                yield what
        plain = plain_words(text)
        candidates = [sentence for word in {*plain.split()} for sentence in self._sentences.get(word, ())]
        if any(sentence in plain for sentence in (*candidates, *self._unspaced)):
            yield "words that a participant said"


def _matchers(names: Mapping[str, str], flags: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Make one pattern per description."""
    by_what: dict[str, list[str]] = {}
    for name, what in names.items():
        by_what.setdefault(what, []).append(name_pattern(name))
    for what, patterns in by_what.items():
        yield what, re.compile("|".join(patterns), flags)
