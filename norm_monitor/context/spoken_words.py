"""Words as a recognizer hears them: normalized, compared by sound, and how long they take to say."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

from norm_core.runtime.time import NS_PER_S

# Chinese and Japanese, which are compared by character; Thai, Lao, Burmese and Khmer are written without spaces too.
_CHARACTERS = r"\u3040-\u30ff\u3400-\u9fff"
_UNSPACED = rf"{_CHARACTERS}\u3000-\u303f\uff00-\uff65\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CHARACTER = re.compile(rf"[{_CHARACTERS}]")
_TOKEN = re.compile(rf"[{_CHARACTERS}]|[^\W_]+(?:['’][^\W_]+)*")
_NO_SPACE = re.compile(rf"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])")

# Letters that a recognizer confuses share a class here; vowels are ignored.
_ALIKE = str.maketrans("bckqgdvfzxjm", "pkkkktffsssn", "aeiouyhw'")
_SHORTEST_RUN = 3  # of consonants; a shorter run matches in any text
# People and synthesizers say about this many characters per second.
_SIGNS_PER_S, _MIN_S = 14.0, 0.6
_SIGNS_PER_S_DENSE = 4.5  # of Chinese and Japanese


def normalize(text: str) -> list[str]:
    """Return the normalized words of a text."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _TOKEN.findall(folded)


def is_character(word: str) -> bool:
    """Whether a normalized word is one Chinese or Japanese character, which is shorter than a word."""
    return _CHARACTER.fullmatch(word) is not None


def join_words(texts: Iterable[str]) -> str:
    """Join words with spaces, except in scripts without spaces."""
    return _NO_SPACE.sub("", " ".join(texts))


def skeleton(word: str) -> str:
    """Return a normalized word's consonants by sound class."""
    return re.sub(r"(.)\1+", r"\1", word.translate(_ALIKE))


def likeness(words: list[str], spoken: list[str]) -> list[float]:
    """Return each word's similarity, from 0 to 1, to a word of `spoken` in the same order."""
    likenesses = [0.0] * len(words)
    matcher = SequenceMatcher(a=words, b=spoken, autojunk=False)
    for block in matcher.get_matching_blocks():
        likenesses[block.a : block.a + block.size] = [1.0] * block.size
    sounds = [skeleton(word) for word in words]
    owner = [index for index, sound in enumerate(sounds) for _ in sound]
    sound_matcher = SequenceMatcher(a="".join(sounds), b="".join(map(skeleton, spoken)), autojunk=False)
    covered = [0] * len(words)
    for block in sound_matcher.get_matching_blocks():
        if block.size >= _SHORTEST_RUN:
            for index in owner[block.a : block.a + block.size]:
                covered[index] += 1
    return [
        max(whole, part / max(len(sound), 1)) for whole, part, sound in zip(likenesses, covered, sounds, strict=True)
    ]


def estimate_duration_ns(text: str) -> int:
    """Estimate how long a text takes to say, in nanoseconds."""
    dense = sum(1 for sign in text if "\u3040" <= sign <= "\u9fff")
    return round(max(_MIN_S, dense / _SIGNS_PER_S_DENSE + (len(text) - dense) / _SIGNS_PER_S) * NS_PER_S)
