"""Words as they are compared: without case, punctuation or accents of writing, and by how they sound."""

import re
import unicodedata
from difflib import SequenceMatcher

# Scripts written without spaces are compared sign by sign.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*")

# Letters that a recogniser confuses in a garbled voice sound alike here; vowels say little.
_ALIKE = str.maketrans("bckqgdvfzxjm", "pkkkktffsssn", "aeiouyhw'")
_SHORTEST_RUN = 3  # of consonants; shorter ones are found in any text


def normalize(text: str) -> list[str]:
    """The words of text in the form in which two texts are compared."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _TOKEN.findall(folded)


def skeleton(word: str) -> str:
    """The consonants of a normalised word, those that sound alike made one."""
    return re.sub(r"(.)\1+", r"\1", word.translate(_ALIKE))


def likeness(words: list[str], said: list[str]) -> list[float]:
    """How much of each word, from 0 to 1, stands in said in the same order, as a word or by its sound."""
    found = [0.0] * len(words)
    matcher = SequenceMatcher(a=words, b=said, autojunk=False)
    for block in matcher.get_matching_blocks():
        found[block.a : block.a + block.size] = [1.0] * block.size
    sounds = [skeleton(word) for word in words]
    owner = [index for index, sound in enumerate(sounds) for _ in sound]
    heard = SequenceMatcher(a="".join(sounds), b="".join(map(skeleton, said)), autojunk=False)
    covered = [0] * len(words)
    for block in heard.get_matching_blocks():
        if block.size >= _SHORTEST_RUN:
            for index in owner[block.a : block.a + block.size]:
                covered[index] += 1
    return [max(whole, part / max(len(sound), 1)) for whole, part, sound in zip(found, covered, sounds, strict=True)]
