"""The language of a talk, as far as its words tell whether their meaning can be read."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import is_chinese, tokens

# The languages of the examples, the wording cues and the exchange classifier.
READ = ("en", "zh")
OTHER = "another language"
# The talk that counts, and the letters without which no talk is in another language.
_LATELY_NS = 120 * NS_PER_S
_MIN_LETTERS = 24
# Words of grammar; none of the second list is an English word.
_ENGLISH_WORDS = """
the a an of to in on at for with from and or but is are was were be been am do does did have has had i you he she it we
they me my your his her our their this that these those not no yes what where when who how why can could will would
should there here please if so
"""
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

    A turn's stated language counts, or else `language_of` its words; names and the like count for no language. The
    talk is in another language if such turns have more letters than those in English or Chinese, and at least 24. A
    foreign word or a short fragment in an English talk changes nothing.
    """
    letters = {"": 0, "other": 0}
    name = ""
    for turn in turns:
        if turn.end_ns < until_ns - _LATELY_NS:
            continue
        language = turn.locale.replace("_", "-").split("-")[0].lower() or language_of(turn.text)
        if not language:
            continue
        is_read = language in READ
        letters["" if is_read else "other"] += letter_count(turn.text)
        name = name if is_read else language
    return name if letters["other"] >= _MIN_LETTERS and letters["other"] > letters[""] else ""


@lru_cache(maxsize=8192)
def language_of(text: str) -> str:
    """Return en, zh, another language, or nothing where the words do not tell.

    Another script than Latin or Chinese is another language. So are Latin words with two or more foreign words of
    grammar, if these are more than twice the English ones.
    """
    scripts = [_script_of(letter) for letter in text if letter.isalpha()]
    foreign = sum(script not in {"LATIN", "CJK"} for script in scripts)
    if foreign * 4 > len(scripts):
        return OTHER
    if is_chinese(text):
        return "zh"
    words = tokens(text)
    english, other = (sum(word in lexicon for word in words) for lexicon in (_ENGLISH, _OTHER))
    if other >= 2 and other > 2 * english:
        return OTHER
    return "en" if english else ""


def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]


@lru_cache(maxsize=8192)
def letter_count(text: str) -> int:
    """Count the letters; one of Chinese, Japanese or Korean counts as three."""
    dense = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL"}
    return sum(3 if _script_of(letter) in dense else 1 for letter in text if letter.isalpha())


def forget_texts() -> None:
    """Clear the caches of texts."""
    language_of.cache_clear()
    letter_count.cache_clear()
