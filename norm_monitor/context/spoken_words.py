"""Words as a recognizer hears them: normalized, compared by sound, with the time that they take to say."""

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
# A shorter run of consonants matches in any text.
_MIN_RUN = 3
# The rate of people and synthesizers.
_CHARACTERS_PER_S = 14.0
# The same in Chinese and Japanese.
_DENSE_CHARACTERS_PER_S = 4.5
# Even the shortest word takes so long.
_MIN_DURATION_S = 0.6


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


def reduce_to_consonants(word: str) -> str:
    """Reduce a normalized word to its consonants, by sound class."""
    return re.sub(r"(.)\1+", r"\1", word.translate(_ALIKE))


def likeness(words: list[str], spoken: list[str]) -> list[float]:
    """Return each word's similarity, from 0 to 1, to a word of `spoken` in the same order."""
    likenesses = [0.0] * len(words)
    matcher = SequenceMatcher(a=words, b=spoken, autojunk=False)
    for block in matcher.get_matching_blocks():
        likenesses[block.a : block.a + block.size] = [1.0] * block.size
    sounds = [reduce_to_consonants(word) for word in words]
    word_of_sound = [index for index, sound in enumerate(sounds) for _ in sound]
    sound_matcher = SequenceMatcher(a="".join(sounds), b="".join(map(reduce_to_consonants, spoken)), autojunk=False)
    covered_counts = [0] * len(words)
    for block in sound_matcher.get_matching_blocks():
        if block.size >= _MIN_RUN:
            for index in word_of_sound[block.a : block.a + block.size]:
                covered_counts[index] += 1
    return [
        max(whole, part / max(len(sound), 1))
        for whole, part, sound in zip(likenesses, covered_counts, sounds, strict=True)
    ]


def estimate_duration_ns(text: str) -> int:
    """Estimate how long a text takes to say, in nanoseconds."""
    dense = sum(1 for sign in text if "\u3040" <= sign <= "\u9fff")
    return round(
        max(_MIN_DURATION_S, dense / _DENSE_CHARACTERS_PER_S + (len(text) - dense) / _CHARACTERS_PER_S) * NS_PER_S
    )
