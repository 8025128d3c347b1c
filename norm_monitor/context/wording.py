"""What the words of a turn are made of, in English and Chinese, without regard to what they mean."""

import re
import unicodedata
from functools import lru_cache

_CJK = r"㐀-䶿一-鿿豈-﫿"
_CHINESE = re.compile(f"[{_CJK}]")
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"[^.?!…。？！\n]*[.?!…。？！\n]+|[^.?!…。？！\n]+$")
_BACKCHANNELS = {
    *("mm", "mmm", "mhm", "mm hm", "mm hmm", "uh huh", "uhuh", "hm", "hmm", "yeah", "yes", "yep", "yup", "ok", "okay"),
    *("right", "sure", "oh", "ah", "aha", "i see", "oh i see", "got it", "oh okay", "oh ok", "wow", "really", "great"),
    *("oh wow", "yeah yeah", "okay okay", "all right", "alright", "good", "nice", "cool", "true", "exactly"),
    *("嗯", "嗯嗯", "对", "对对", "好", "好的", "是", "是的", "哦", "啊", "行"),
}
_FILLERS = {"um", "uh", "er", "erm", "hm", "hmm", "mm", "well", "so", "嗯", "呃", "那个"}
_FILLER_PHRASES = re.compile(
    r"^(let me (see|think|check|have a look)|one (moment|second|sec)|(just )?a (moment|second|sec)|hold on|give me a"
    r"|just a|let's see|请稍等|稍等|让我(想|看))"
)
_QUESTION_OPENERS = (
    r"(and |so |but |okay |well |sorry |excuse me )*(what|who|whom|whose|where|when|why|how|which|is|are|am|was|were"
    r"|do|does|did|can|could|will|would|shall|should|may|might|have|has|had|isn't|aren't|don't|doesn't|didn't|can't"
    r"|couldn't|won't|wouldn't|any)\b"
)
_QUESTION_ZH = re.compile(r"[吗呢]|什么|怎么|哪|谁|几点|多少|为什么|是不是|能不能|可不可以|有没有")


def tokens(text: str) -> list[str]:
    """Words in lower case; each Chinese character is one."""
    return list(_tokens(text))


# Each window looks at the turns of the last minutes again.
@lru_cache(maxsize=8192)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(
        found.group().lower().replace("’", "'") for found in _TOKEN.finditer(unicodedata.normalize("NFKC", text))
    )


@lru_cache(maxsize=8192)
def word_count(text: str) -> int:
    """How many words; two Chinese characters count as one."""
    found = tokens(text)
    characters = sum(1 for token in found if is_chinese(token))
    return len(found) - characters + (characters + 1) // 2


def forget_words() -> None:
    """Keeps nothing of the texts that were looked at until now."""
    for looked_at in (_tokens, word_count, _sentences, _clauses):
        looked_at.cache_clear()


def sentences(text: str) -> list[str]:
    """The sentences of a text, without those that hold no word."""
    return list(_sentences(text))


@lru_cache(maxsize=8192)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part for found in _SENTENCE.finditer(text) if tokens(part := found.group().strip()))


def clauses(sentence: str) -> list[str]:
    """What stands between commas or is joined by "and", where there are several."""
    return list(_clauses(sentence))


@lru_cache(maxsize=8192)
def _clauses(sentence: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in re.split(r"[,，;；:：]|\band\b", sentence) if tokens(part))
    return parts if len(parts) > 1 else ()


def is_chinese(text: str) -> bool:
    """True where Chinese characters are in the text."""
    return _CHINESE.search(text) is not None


def locale_of(text: str) -> str:
    """The language of thresholds and examples for this text: en or zh."""
    return "zh" if is_chinese(text) else "en"


def is_backchannel(text: str) -> bool:
    """True of "mm-hm", "okay" and the like: a sign of listening that claims no turn."""
    plain = "".join(tokens(text)) if is_chinese(text) else " ".join(tokens(text))
    return plain in _BACKCHANNELS or not plain


def is_filler(text: str) -> bool:
    """True of "let me see", "um" and the like: a promise that an answer is coming."""
    found = tokens(text)
    phrase = "".join(found) if is_chinese(text) else " ".join(found)
    return bool(found) and (
        all(token in _FILLERS for token in found)
        or (word_count(text) <= 7 and _FILLER_PHRASES.search(phrase) is not None)
    )


def is_question(text: str) -> bool:
    """True where the text has the form of a question, whatever its punctuation."""
    return any(_asks(sentence) for sentence in sentences(text))


def question_in(text: str) -> str:
    """The last question in the text, or an empty string."""
    return next((sentence for sentence in reversed(sentences(text)) if _asks(sentence)), "")


def _asks(sentence: str) -> bool:
    if sentence.rstrip("\"'”’ ").endswith(("?", "？")):
        return True
    if is_chinese(sentence):
        return _QUESTION_ZH.search(sentence) is not None
    return re.match(_QUESTION_OPENERS, " ".join(tokens(sentence))) is not None and sentence.rstrip()[-1:] not in "!"
