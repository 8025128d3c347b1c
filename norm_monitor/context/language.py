"""The language of a talk: whether the meaning of its words can be read."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_chinese, tokens

# The languages of the examples, the wording cues and the exchange classifier.
READ_LANGUAGES = ("en", "zh")
OTHER_LANGUAGE = "another language"
# How much recent talk decides the language.
_RECENT_NS = 120 * NS_PER_S
# Minimum number of letters in another language before a talk counts as one.
_MIN_LETTERS = 24
# Words of grammar in English.
_ENGLISH_WORDS = """
the a an of to in on at for with from and or but is are was were be been am do does did have has had i you he she it we
they me my your his her our their this that these those not no yes what where when who how why can could will would
should there here please if so
"""
# Words of grammar in other languages.
_OTHER_WORDS = """
der das und ist nicht ich sie wir ein eine einen mit auf für von zu dem den sind haben kann wie wo aber auch es
le les une est et je vous nous dans pour avec pas que qui sur au du des ce où mais
el los las una y en por para con lo se usted está dónde pero como muy yo
il gli di che è un per non sono mi dove ma della io os uma um não eu você onde mas em da
het een niet ik van dat waar maar zijn och att det som jag är inte var på med og ikke jeg er til af hvor
nie jest się na czy gdzie ale że bir ve bu için nerede değil ben
"""
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_OTHER = frozenset(_OTHER_WORDS.split()) - _ENGLISH


def other_language(turns: Sequence[Turn], until_ns: int) -> str:
    """Return the language of the last two minutes of these turns if its wording is not read; empty if it is.

    The stated language of a turn counts, or else that of its words; names and the like count for no language. The talk
    is in another language if such turns have more letters than those in English or Chinese, and at least 24. A foreign
    word or a short fragment in an English talk changes nothing.
    """
    letters = {"": 0, "other": 0}
    name = ""
    for turn in turns:
        if turn.end_ns < until_ns - _RECENT_NS:
            continue
        language = turn.locale.replace("_", "-").split("-")[0].lower() or detect_language(turn.text)
        if not language:
            continue
        is_read = language in READ_LANGUAGES
        letters["" if is_read else "other"] += count_letters(turn.text)
        name = name if is_read else language
    return name if letters["other"] >= _MIN_LETTERS and letters["other"] > letters[""] else ""


@lru_cache(maxsize=8192)
def detect_language(text: str) -> str:
    """Detect English, Chinese or another language; return nothing where the words do not tell.

    Another script than Latin or Chinese is another language. So are Latin words with two or more foreign words of
    grammar, if these are more than twice the English ones.
    """
    scripts = [_find_script(letter) for letter in text if letter.isalpha()]
    foreign = sum(script not in {"LATIN", "CJK"} for script in scripts)
    if foreign * 4 > len(scripts):
        return OTHER_LANGUAGE
    if is_chinese(text):
        return "zh"
    words = tokens(text)
    english, other = (sum(word in lexicon for word in words) for lexicon in (_ENGLISH, _OTHER))
    if other >= 2 and other > 2 * english:
        return OTHER_LANGUAGE
    return "en" if english else ""


def _find_script(letter: str) -> str:
    """Return the script of a letter by the name of its character."""
    return unicodedata.name(letter, "").split(" ")[0]


@lru_cache(maxsize=8192)
def count_letters(text: str) -> int:
    """Count the letters; one of Chinese, Japanese or Korean counts as three."""
    dense_scripts = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
    return sum(3 if _find_script(letter) in dense_scripts else 1 for letter in text if letter.isalpha())


def forget_texts() -> None:
    """Clear the caches of texts."""
    detect_language.cache_clear()
    count_letters.cache_clear()
