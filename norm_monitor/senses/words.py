"""Words as they are compared: without case, punctuation or accents of writing."""

import re
import unicodedata
from difflib import SequenceMatcher

# Scripts written without spaces are compared sign by sign.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’][^\W_]+)*")


def normalised(text: str) -> list[str]:
    """The words of text in the form in which two texts are compared."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _TOKEN.findall(folded)


def share_found(words: list[str], said: list[str]) -> float:
    """The share of words that stand in said too, in the same order."""
    if not words:
        return 0.0
    matcher = SequenceMatcher(a=words, b=said, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / len(words)
